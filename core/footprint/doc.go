// Package footprint keeps the memory of the process small without making it slow.
//
// It owns the pace of the garbage collector, and returns the heap that a burst of calls left behind to
// the system once the process is idle. It does not limit what the server may hold in memory: the packages
// that hold data do.
package footprint
