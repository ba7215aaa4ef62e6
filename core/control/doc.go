// Package control connects an operator on the machine to a running server through a Unix socket in the home.
// `ropewalk reload`, `plugin list`, `log level`, `debug profile` and `doctor` use it.
//
// It is responsible for the socket, its permissions (the server's user, and root), the messages and the
// profiles of the process. The server's wiring passes in what a command does. It is separate from the HTTP API
// because an operator on the machine does not need a key, and a caller of the API must not be able to do what
// an operator does.
package control
