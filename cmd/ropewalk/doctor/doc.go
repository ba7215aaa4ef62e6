// Package doctor contains `ropewalk doctor`: checks of a server and its dependencies, each with advice.
package doctor
