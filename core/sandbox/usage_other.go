//go:build !linux

package sandbox

// ProcessUsage measures nothing.
func ProcessUsage(int) (Usage, bool) { return Usage{}, false }
