// Package metrics tells a monitoring system how the server is, in the text format that Prometheus
// reads.
//
// It owns the names of the metrics and their format. It does not own the figures: each package that
// has some is asked when somebody looks, so that nothing is counted twice and nothing runs
// between two looks.
package metrics
