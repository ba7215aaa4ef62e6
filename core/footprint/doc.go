// Package footprint keeps the memory of the process small without making it slow.
//
// It owns the pace of the garbage collector, and returns the heap that a burst of calls left behind to
// the system once the process is idle. It does not limit how much data the server may keep in memory: the packages
// that keep data do.
package footprint
