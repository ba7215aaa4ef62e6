//go:build chaos

package accounts

import "time"

// These are the amounts that people_test.go uses in `make chaos`.
const (
	people        = 20
	appsOfPeople  = 5
	callsOfPeople = 20_000
	costPairs     = 3_000
	outage        = time.Minute
)
