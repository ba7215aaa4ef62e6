package metrics

import (
	"bytes"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/pluginhost"
)

// Sources are the packages that are asked.
type Sources struct {
	Version  string
	Started  time.Time
	Plugins  func() []pluginhost.Status
	Apps     func() map[core.State]int // how many apps of all workspaces are in which state
	Sessions func() int                // live MCP sessions of this process
}

// Metrics writes what the sources say.
type Metrics struct{ registry *prometheus.Registry }

// New returns Metrics over the sources and the Go runtime's own figures.
func New(s Sources) *Metrics {
	r := prometheus.NewRegistry()
	r.MustRegister(collector{s}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &Metrics{registry: r}
}

// Text is everything, in the text format.
func (m *Metrics) Text() ([]byte, error) {
	families, err := m.registry.Gather()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// collector asks the sources when it is asked itself.
type collector struct{ s Sources }

// Describe says nothing beforehand: which plugins there are changes with a reload.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect asks every source.
func (c collector) Collect(out chan<- prometheus.Metric) {
	send := func(name, help string, kind prometheus.ValueType, value float64, labels ...string) {
		var names, values []string
		for i := 0; i+1 < len(labels); i += 2 {
			names, values = append(names, labels[i]), append(values, labels[i+1])
		}
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("ropewalk_"+name, help, names, nil), kind, value, values...)
	}
	send("info", "The server; its value is always 1.", prometheus.GaugeValue, 1, "version", c.s.Version)
	send("uptime_seconds", "Seconds since the server started.", prometheus.GaugeValue, time.Since(c.s.Started).Seconds())
	send("mcp_sessions", "Live MCP sessions of this process.", prometheus.GaugeValue, float64(c.s.Sessions()))
	counts := c.s.Apps()
	for _, state := range []core.State{core.StateStarting, core.StateRunning, core.StateCrashed, core.StateDead, core.StateStopped} {
		send("apps", "Installed apps by state.", prometheus.GaugeValue, float64(counts[state]), "state", string(state))
	}
	for _, p := range c.s.Plugins() {
		who := []string{"kind", string(p.Kind), "name", p.Name, "adapter", p.Adapter}
		send("plugin_up", "Whether the plugin serves: 1, or 0 while it is replaced.", prometheus.GaugeValue, up(p), who...)
		send("plugin_restarts_total", "How often the plugin was replaced because it died or hung.", prometheus.CounterValue, float64(p.Restarts), who...)
		send("plugin_calls_total", "Calls made to the plugin.", prometheus.CounterValue, float64(p.Calls), who...)
		send("plugin_failures_total", "Calls that the plugin could not answer, because it or its backend was away.", prometheus.CounterValue, float64(p.Failures), who...)
		send("plugin_degraded", "Whether most of the last calls failed or were slow: 1 or 0.", prometheus.GaugeValue, number(p.Degraded), who...)
		send("plugin_call_seconds", "How long the last calls took, by quantile.", prometheus.GaugeValue, p.P50.Seconds(), append(who, "quantile", "0.5")...)
		send("plugin_call_seconds", "How long the last calls took, by quantile.", prometheus.GaugeValue, p.P99.Seconds(), append(who, "quantile", "0.99")...)
		send("plugin_resident_memory_bytes", "Resident memory of the plugin's process.", prometheus.GaugeValue, float64(p.Memory), who...)
	}
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func up(p pluginhost.Status) float64 {
	if p.State == pluginhost.Restarting {
		return 0
	}
	return 1
}
