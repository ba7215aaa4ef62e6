//go:build race

package harness

// Race is true where the tests, and every server they start, run with the race detector.
const Race = true
