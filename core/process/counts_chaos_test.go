//go:build linux && chaos

package process_test

// How often tricks_test.go stops an app, and kills a server with apps, in `make chaos`.
const (
	stops       = 500
	serverKills = 100
	trickyApps  = 10
)
