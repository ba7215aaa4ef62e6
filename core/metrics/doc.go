// Package metrics measures the server and serves the figures in the text format that Prometheus reads.
//
// It owns the names of the metrics, their labels and buckets, and the separate listener of http.metrics.
// Where OpenTelemetry's semantic conventions name a metric, that name is used, in the form that Prometheus
// gives it. It does not own what is measured: packages report events through small interfaces of their own,
// which Metrics implements, and are asked for their state when somebody reads the metrics.
//
// Labels have bounded sets of values. No label is the id of a user, a workspace, a session or a
// conversation.
package metrics
