//go:build !linux

package sandbox

// ProcessUsage measures nothing.
func ProcessUsage(int) (Usage, bool) { return Usage{}, false }

// SharedFairly measures nothing.
func SharedFairly(int) (int64, bool) { return 0, false }

// DetachedMemory measures nothing.
func DetachedMemory() int64 { return 0 }
