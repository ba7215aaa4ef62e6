//go:build !linux

package footprint

// releaseProgram has no way to tell other systems.
func releaseProgram() {}
