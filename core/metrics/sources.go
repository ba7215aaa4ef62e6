package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/audit"
	"github.com/ropewalk/ropewalk/core/event"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// Sources provide the server's state each time the metrics are read. All are required.
type Sources struct {
	Started  time.Time
	Plugins  func() []pluginhost.Status
	Apps     func() map[core.State]int // number of apps in each state, across all workspaces
	Asleep   func() int                // number of running apps that are asleep
	AppCalls func() map[string]int     // pending calls of the apps of all workspaces, by name
	Sessions func() int                // live MCP sessions in this process
	Streams  func() int                // open event streams of HTTP clients
	Events   func() event.Stats
	Database func() database.Stats
	Audit    func() []audit.Status

	Providers func() map[string]bool // whether each identity provider can be reached
}

// AddSources adds the metrics from s.
func (m *Metrics) AddSources(s Sources) { m.registry.MustRegister(collector{s, m}) }

// collector reads the sources.
type collector struct {
	s Sources
	m *Metrics
}

// Describe sends nothing, because the set of apps and plugins changes.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect reads every source.
func (c collector) Collect(out chan<- prometheus.Metric) {
	o := output{out}
	o.gauge("uptime_seconds", "Seconds since the server started.", time.Since(c.s.Started).Seconds())
	o.gauge("mcp_sessions", "Live MCP sessions in this process.", float64(c.s.Sessions()))
	o.gauge("http_streams", "Open event streams of HTTP clients.", float64(c.s.Streams()))
	c.collectApps(o)
	c.collectPlugins(o)
	events := c.s.Events()
	o.gauge("event_readers", "Open subscriptions to events.", float64(events.Readers))
	o.gauge("event_queue_length", "Events that subscribers have not received yet.", float64(events.Queued))
	o.counter("events_dropped_total", "Events that a subscriber did not get because it lagged, which ends its stream.", float64(events.Dropped))
	for _, sink := range c.s.Audit() {
		o.gauge("audit_records_waiting", "Audit records that the sink has not acknowledged yet.", float64(sink.Waiting), "sink", sink.Sink)
		o.counter("audit_records_lost_total", "Audit records that the sink will never get.", float64(sink.Lost), "sink", sink.Sink)
	}
	db := c.s.Database()
	o.gauge("database_connections", "Open connections to the database.", float64(db.Open))
	o.gauge("database_connections_in_use", "Connections to the database in use.", float64(db.InUse))
	o.counter("database_connection_waits_total", "Calls that waited for a connection to the database.", float64(db.Waits))
	o.counter("database_connection_wait_seconds_total", "Time that calls waited for a connection to the database.", db.Waited.Seconds())
}

func (c collector) collectApps(o output) {
	counts := c.s.Apps()
	for _, state := range []core.State{core.StateStarting, core.StateRunning, core.StateCrashed, core.StateDead, core.StateStopped} {
		o.gauge("apps", "Installed apps by state.", float64(counts[state]), "state", string(state))
	}
	o.gauge("apps_asleep", "Running apps that are asleep.", float64(c.s.Asleep()))
	calls := map[string]int{}
	for app, n := range c.s.AppCalls() {
		calls[c.m.apps.or(app)] += n
	}
	for app, n := range calls {
		o.gauge("app_calls_pending", "Calls to an app without an answer yet, including those that wait for the app.", float64(n), "app", app)
	}
}

func (c collector) collectPlugins(o output) {
	for name, up := range c.s.Providers() {
		o.gauge("identity_provider_up", "Whether the identity provider can be reached: 1 or 0.", number(up), "name", name)
	}
	for _, p := range c.s.Plugins() {
		labels := []string{"kind", string(p.Kind), "name", p.Name, "adapter", p.Adapter}
		o.gauge("plugin_up", "Whether the plugin is serving: 1, or 0 while it is being replaced.", number(p.State != pluginhost.Restarting), labels...)
		o.counter("plugin_restarts_total", "Number of times the plugin was replaced because it died or did not respond.", float64(p.Restarts), labels...)
		o.counter("plugin_calls_total", "Calls to the plugin.", float64(p.Calls), labels...)
		o.counter("plugin_failures_total", "Calls that the plugin could not answer, because it or its backend was unavailable.", float64(p.Failures), labels...)
		o.gauge("plugin_degraded", "Whether most of the recent calls failed or were slow: 1 or 0.", number(p.Degraded), labels...)
		o.gauge("plugin_resident_memory_bytes", "Resident memory of the plugin's process.", float64(p.Memory), labels...)
	}
}

// output writes the server's own metrics.
type output struct{ to chan<- prometheus.Metric }

func (o output) gauge(name, help string, value float64, labels ...string) {
	o.send(name, help, prometheus.GaugeValue, value, labels)
}

func (o output) counter(name, help string, value float64, labels ...string) {
	o.send(name, help, prometheus.CounterValue, value, labels)
}

// send writes one metric. labels alternates names and values.
func (o output) send(name, help string, kind prometheus.ValueType, value float64, labels []string) {
	var names, values []string
	for i := 0; i+1 < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	o.to <- prometheus.MustNewConstMetric(prometheus.NewDesc("ropewalk_"+name, help, names, nil), kind, value, values...)
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
