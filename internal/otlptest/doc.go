// Package otlptest is a collector for tests: it receives spans over OTLP, by gRPC and by HTTP, as they are
// on the wire.
package otlptest
