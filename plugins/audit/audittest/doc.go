// Package audittest is the conformance kit of audit sinks: the promises of the contract as named checks, to be
// run against any implementation, direct or at the other end of a connection.
//
// It owns the checks and knows no backend. What a sink has kept is read through the sink itself, when it is an
// audit.Reader, or through what the caller gives to look at its receiver; without either, most checks
// are skipped and say so. Each check uses streams of its own. In a test: plugintest.Run(t, audittest.Checks(),
// subject); for an executable: `ropewalk plugin test PATH`. Each check is proven by sinks that break that one
// promise (liars_test.go).
package audittest
