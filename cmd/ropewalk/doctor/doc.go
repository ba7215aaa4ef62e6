// Package doctor holds `ropewalk doctor`: checks of a server and of what it needs, each with its remedy.
package doctor
