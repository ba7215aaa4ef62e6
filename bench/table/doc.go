// Package table produces the benchmark's table: every figure that the service must reach, measured in the same
// run as the rivals.
//
// It decides which servers to start, in which order to load them, and how to calculate a figure from the
// samples. Rounds are interleaved, so that other work on the machine affects all servers equally. Each round
// gives one ratio, and the result is the median of the ratios. The package contains neither the load generator
// (package load) nor servers (package rival; the service itself is the executable being measured).
package table
