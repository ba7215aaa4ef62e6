// Package admin contains the commands about people and access: `ropewalk workspace`, `ropewalk user`, `ropewalk
// key` and `ropewalk account`.
package admin
