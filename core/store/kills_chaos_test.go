//go:build chaos

package store

// How often crash_test.go kills the writer, and PostgreSQL, in `make chaos`.
const (
	kills       = 500
	serverKills = 50
)
