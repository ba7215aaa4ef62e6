// Package control connects an operator on the machine with a running server: a Unix socket in the home,
// used by `ropewalk reload`, `plugin list`, `log level`, `debug profile` and `doctor`.
//
// It owns the socket, its permissions (the user of the server, and root), the messages
// and the profiles of the process. It does not own what a command does: the server's wiring passes that
// in. It is separate from the HTTP API because an operator on the machine needs no key, and a caller of
// the API must not be able to do what an operator does.
package control
