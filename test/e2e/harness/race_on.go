//go:build race

package harness

// Race reports whether the tests, and every server they start, run with the race detector.
const Race = true
