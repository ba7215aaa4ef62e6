// Package server connects the packages of the service to each other.
//
// It owns the order in which they start (start.go) and stop (closers.go), and the reload of the
// configuration (reload.go), which swaps plugins such as that of auth and the session store while
// requests are served. It has no behaviour of its own beyond that. Only the command imports it.
package server
