// Package memory is the session store of a single server: a map in its own process. The sessions end with the process;
// after a restart, clients get not_found for each of them. It has no settings.
//
// It is the default store, and the fake in other packages' tests.
package memory
