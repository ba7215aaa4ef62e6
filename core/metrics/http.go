package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func (m *Metrics) addHTTP() {
	requests := m.histogram("http_server_request_duration_seconds", "Duration of HTTP requests, by route. For streams, the time until the response begins.",
		[]float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10},
		"http_request_method", "http_route", "http_response_status_code")
	m.requests.find = func(k requestKey) (prometheus.Observer, bool) {
		return requests.WithLabelValues(k.method, k.route, statusText(k.status)), true
	}
}

// requestKey identifies the series of a request. Routes are patterns, and methods come from a fixed set.
type requestKey struct {
	method, route string
	status        int
}

// Request records an HTTP request. route is the pattern of its route, or "" for a path without one.
func (m *Metrics) Request(method, route string, status int, took time.Duration) {
	m.requests.of(requestKey{httpMethod(method), route, status}).Observe(took.Seconds())
}

// httpMethod returns a method, or other for an unknown one, as the convention requires.
func httpMethod(method string) string {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return method
	}
	return other
}

// statusText returns a status code as text. It does not format the common codes each time.
func statusText(status int) string {
	switch status {
	case 200:
		return "200"
	case 202:
		return "202"
	}
	return strconv.Itoa(status)
}
