// Package doctor contains `ropewalk doctor`: checks of a server and of what it needs, each with advice.
package doctor
