//go:build linux && !chaos

package process_test

// How often tricks_test.go stops an app, and kills a server with apps.
const (
	stops       = 6
	serverKills = 1
	trickyApps  = 3
)
