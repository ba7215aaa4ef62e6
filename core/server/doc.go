// Package server connects the packages of the server to each other.
//
// It owns the order in which they start (start.go) and stop (closers, in server.go), and the reload of the
// configuration (reload.go). A reload swaps plugins, such as auth adapters and the session store, while requests are
// served. Only the command imports it.
package server
