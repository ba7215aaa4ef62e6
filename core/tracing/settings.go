package tracing

import (
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// The OTEL_* variables that this package reads itself. The SDK and the exporters read the others.
const (
	envDisabled       = "OTEL_SDK_DISABLED"
	envExporter       = "OTEL_TRACES_EXPORTER"
	envEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	envSampler        = "OTEL_TRACES_SAMPLER"
	envPropagators    = "OTEL_PROPAGATORS"
)

// The protocols of OTLP.
const (
	protocolGRPC = "grpc"
	protocolHTTP = "http/protobuf"
)

// settings are the values of the variables.
type settings struct {
	on       bool
	protocol string
}

// readSettings reads the variables. As OpenTelemetry's specification requires, unknown values are logged and
// ignored.
func readSettings(env map[string]string, log hclog.Logger) settings {
	s := settings{on: exports(env, log), protocol: protocolHTTP}
	if !s.on {
		return s
	}
	for _, name := range []string{envTracesProtocol, envProtocol} {
		value := env[name]
		if value == "" {
			continue
		}
		if value == protocolGRPC || value == protocolHTTP {
			s.protocol = value
			break
		}
		log.Warn("ignoring the variable "+name+", which must be grpc or http/protobuf", "value", value)
	}
	if value := env[envSampler]; value != "" && !slices.Contains(samplers(), value) {
		log.Warn("ignoring the variable "+envSampler+", which must be one of "+strings.Join(samplers(), ", "), "value", value)
	}
	for name := range strings.SplitSeq(env[envPropagators], ",") {
		if name = strings.TrimSpace(name); name != "" && name != "tracecontext" {
			log.Warn("ignoring part of the variable "+envPropagators+": only trace contexts in the W3C format (tracecontext) are read and passed on", "value", name)
		}
	}
	return s
}

// exports reports whether spans are exported: if OTEL_TRACES_EXPORTER is otlp, or if it is not set but an endpoint is.
func exports(env map[string]string, log hclog.Logger) bool {
	if strings.EqualFold(env[envDisabled], "true") {
		return false
	}
	names := env[envExporter]
	if names == "" {
		return env[envEndpoint] != "" || env[envTracesEndpoint] != ""
	}
	on := false
	for name := range strings.SplitSeq(names, ",") {
		switch name = strings.TrimSpace(name); name {
		case "otlp":
			on = true
		case "none":
		default:
			log.Warn("ignoring part of the variable "+envExporter+", which must be otlp or none", "value", name)
		}
	}
	return on
}

// samplers returns the values of OTEL_TRACES_SAMPLER that the SDK supports.
func samplers() []string {
	return []string{"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"}
}
