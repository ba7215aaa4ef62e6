//go:build !chaos

package accounts

import "time"

// These are the amounts that people_test.go uses, except in `make chaos`.
const (
	people        = 4
	appsOfPeople  = 3
	callsOfPeople = 1_200
	costPairs     = 200
	outage        = 6 * time.Second // longer than a token lives
)
