// Package memory is the session store of a single server: a map in its own process. The
// sessions end with the process: after a restart of the server each of them is not_found. It takes no
// settings.
//
// It is the default, and the fake in tests of other packages.
package memory
