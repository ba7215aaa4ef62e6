package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
)

func (m *Metrics) addPlugins() {
	m.plugins = m.histogram("ropewalk_plugin_call_duration_seconds", "Duration of calls to plugins.",
		[]float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10},
		"kind", "name", "adapter", "outcome")
}

// PluginCall records a call to a plugin.
func (m *Metrics) PluginCall(kind plugins.Kind, name, adapter string, took time.Duration, err error) {
	outcome := "answered"
	switch {
	case errors.Is(err, context.Canceled):
		outcome = "cancelled"
	case errors.Is(err, plugins.ErrUnavailable):
		outcome = "unavailable"
	}
	m.plugins.WithLabelValues(string(kind), name, adapter, outcome).Observe(took.Seconds())
}
