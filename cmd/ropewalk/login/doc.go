// Package login contains the commands that log a person in to a server and out again: `ropewalk login`,
// `ropewalk logout` and `ropewalk whoami`.
package login
