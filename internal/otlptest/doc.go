// Package otlptest is a collector for tests: it receives spans over OTLP, through gRPC and HTTP.
package otlptest
