// Package sessionstoretest is the conformance kit of session stores: the promises of
// sessionstore.Store as named checks, to be run against any implementation, direct or at the other
// end of a connection.
//
// It owns the checks and knows no backend. Each check uses ids of its own and takes at most a few
// seconds. In a test: plugintest.Run(t, sessionstoretest.Checks(), store); outside of one:
// kit.Run; for an executable: `ropewalk plugin test PATH`. What needs a second server, or a backend
// that goes away, cannot be asked of any implementation in the same way and is not here. Each check
// is proven by a store that lies about that one promise (liars_test.go).
package sessionstoretest
