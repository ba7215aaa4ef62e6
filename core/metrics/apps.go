package metrics

import "time"

func (m *Metrics) addApps() {
	m.starts = m.histogram("ropewalk_app_start_duration_seconds", "Duration of app starts, from the launch to the first list of tools.",
		[]float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}, "app", "outcome")
	m.restarts = m.counter("ropewalk_app_restarts_total", "Attempts to restart an app that stopped on its own.", "app")
	m.deaths = m.counter("ropewalk_app_deaths_total", "Number of times a running app stopped on its own.", "app")
	m.wakeUps = m.counter("ropewalk_app_wakeups_total", "Calls that made the server try an unreachable remote app immediately.", "app")
}

// AppStart records an attempt to start an app.
func (m *Metrics) AppStart(app string, took time.Duration, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "failed"
	}
	m.starts.WithLabelValues(m.apps.or(app), outcome).Observe(took.Seconds())
}

// AppRestart records that an app is restarted after it stopped on its own.
func (m *Metrics) AppRestart(app string) { m.restarts.WithLabelValues(m.apps.or(app)).Inc() }

// AppDeath records that a running app stopped on its own.
func (m *Metrics) AppDeath(app string) { m.deaths.WithLabelValues(m.apps.or(app)).Inc() }

// AppWakeUp records that a call made the server try an unreachable remote app immediately.
func (m *Metrics) AppWakeUp(app string) { m.wakeUps.WithLabelValues(m.apps.or(app)).Inc() }
