//go:build !race

package harness

// Race reports whether the tests and all servers that they start run with the race detector.
const Race = false
