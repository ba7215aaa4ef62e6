//go:build !chaos

package store

// How often crash_test.go kills the writer, and PostgreSQL.
const (
	kills       = 20
	serverKills = 2
)
