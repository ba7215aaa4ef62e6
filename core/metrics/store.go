package metrics

import (
	"context"
	"errors"
	"time"
)

func (m *Metrics) addStore() {
	m.statements = m.histogram("db_client_operation_duration_seconds", "Duration of reads and writes of the database, transactions as a whole.",
		[]float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}, "db_system_name", "db_operation_name", "error_type")
}

// DatabaseCall records a read or a write of the database.
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
