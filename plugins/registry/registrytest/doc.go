// Package registrytest is the conformance kit of bundle registries: the promises of
// registry.Registry as named checks, to be run against any implementation, direct or at the other
// end of a connection.
//
// It owns the checks and knows no registry: what there is to resolve it learns by searching, so the
// registry under test must hold at least one bundle that this platform can install, and shows the
// more the more it holds. Checks only read. In a test: plugintest.Run(t, registrytest.Checks(),
// reg); outside of one: kit.Run; for an executable: `ropewalk plugin test PATH`. What needs a
// registry that goes away cannot be asked of any implementation in the same way and is not here.
// Each check is proven by a registry that lies about that one promise (liars_test.go).
package registrytest
