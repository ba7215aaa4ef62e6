// Package admin holds the commands about people and access: `ropewalk workspace`, `ropewalk user` and
// `ropewalk key`.
package admin
