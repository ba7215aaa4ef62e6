// Package metrics measures the server and serves the figures in Prometheus's text format.
//
// It defines the names of the metrics, their labels and buckets, and runs the separate listener of http.metrics. If
// OpenTelemetry's semantic conventions name a metric, it uses that name in Prometheus form. Other packages decide what
// to measure: they report events through their own small interfaces, which Metrics implements. The state of other
// packages, such as the number of sessions, is read whenever the metrics are read (sources.go).
//
// Labels have bounded sets of values. No label is the id of a user, a workspace, a session or a conversation.
package metrics
