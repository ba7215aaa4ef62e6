// Package login holds the commands that log a person in at a server, and out again: `ropewalk login`, `ropewalk logout`
// and `ropewalk whoami`.
package login
