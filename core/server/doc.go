// Package server is the wiring: every room as a struct literal, started in order, closed in
// reverse.
//
// It owns the order of start and end, what a reload exchanges, and nothing else: no room's
// behaviour is here. Only the command imports it.
package server
