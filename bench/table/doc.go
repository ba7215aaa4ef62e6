// Package table prints the benchmark's table: every figure that the service must reach, measured
// in one run against the rivals beside it.
//
// It owns which servers are started, in which order they are loaded, and how a figure is made of
// the samples: rounds are interleaved, so that whatever else the machine does hits everyone alike,
// each round gives one ratio, and the median of the ratios counts. It owns no load (package load)
// and no server (package rival; the service itself is the executable that is measured).
package table
