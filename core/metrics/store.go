package metrics

import (
	"context"
	"errors"
	"time"
)

func (m *Metrics) addStore() {
	m.statements = m.histogram("db_client_operation_duration_seconds", "Duration of database reads and writes; a transaction counts as one.",
		[]float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}, "db_system_name", "db_operation_name", "error_type")
}

// DatabaseCall records a database read or write.
func (m *Metrics) DatabaseCall(system, operation string, took time.Duration, err error) {
	errorType := ""
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled):
		errorType = "cancelled"
	default:
		errorType = other
	}
	m.statements.WithLabelValues(system, operation, errorType).Observe(took.Seconds())
}
