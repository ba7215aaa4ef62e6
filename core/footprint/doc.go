// Package footprint keeps the memory of the process small without making it slow.
//
// It owns the pace of the garbage collector, and gives the heap that a burst of calls left behind back
// to the system once the process is idle. It sets no limits: how much the service may hold is decided
// where things are held.
package footprint
