package metrics

import (
	"bytes"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
)

// Metrics holds the metrics of one server. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	requests   series[requestKey, prometheus.Observer]
	served     series[servedKey, prometheus.Observer]
	sent       series[sentKey, prometheus.Observer]
	toolCalls  series[toolCallKey, prometheus.Counter]
	starts     *prometheus.HistogramVec
	restarts   *prometheus.CounterVec
	deaths     *prometheus.CounterVec
	wakeUps    *prometheus.CounterVec
	plugins    *prometheus.HistogramVec
	runs       *prometheus.HistogramVec
	modelCalls *prometheus.HistogramVec
	tokens     *prometheus.HistogramVec
	cost       *prometheus.CounterVec
	statements *prometheus.HistogramVec

	tools  limitedSet // app and tool pairs
	apps   limitedSet
	models limitedSet
}

// Build identifies the server's build.
type Build struct{ Version, Commit string }

// New returns Metrics that include metrics of the Go runtime and the process.
func New(b Build) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		tools:    newLimitedSet(maxTools), apps: newLimitedSet(maxApps), models: newLimitedSet(maxModels),
	}
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ropewalk_build_info", Help: "The running build; the value is always 1.",
	}, []string{"version", "commit", "goversion"})
	info.WithLabelValues(b.Version, b.Commit, runtime.Version()).Set(1)
	m.registry.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.addHTTP()
	m.addMCP()
	m.addApps()
	m.addPlugins()
	m.addChat()
	m.addStore()
	return m
}

// Text returns all metrics in the text format.
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

// histogram registers a histogram. Durations are in seconds.
func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(h)
	return h
}

// counter registers a counter.
func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}
