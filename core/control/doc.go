// Package control is the operator's line to a running server: a unix socket under the home, which
// `ropewalk reload` and `ropewalk plugin list` speak over.
//
// It owns the socket, who may open it (the server's own user: mode 0600 in a 0700 folder), and the
// few messages. It does not own what a command does: the server's wiring hands that in. It is
// apart from the HTTP API because an operator at the machine needs no key, and a caller of the
// API must not be able to do what an operator does.
package control
