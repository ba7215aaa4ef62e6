// Package admin contains the commands that manage people and access: `ropewalk workspace`, `ropewalk user`, `ropewalk
// key` and `ropewalk account`.
package admin
