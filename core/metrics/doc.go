// Package metrics measures the server and serves the figures in Prometheus's text format.
//
// It defines the names of the metrics, their labels and buckets, and runs the separate listener of
// http.metrics. If OpenTelemetry's semantic conventions name a metric, it uses that name in Prometheus form.
// What is measured is up to other packages: they report events through their own small interfaces, which
// Metrics implements, and are asked for their state when the metrics are read.
//
// Labels have bounded sets of values. No label is the id of a user, a workspace, a session or a conversation.
package metrics
