// Package footprint keeps the process small without making it slow.
//
// It owns the pace of the garbage collector; what is given back to the system when nothing much
// happens: the heap that a burst of calls left behind, and, once, the pages of the executable that
// only the start needed; and on how many processors the process runs: one, while that is enough. It
// owns no limit: how much the service may hold is decided where things are held.
//
// It is apart because it is about the process as a whole, and because every part of it has to be
// looked at when the runtime changes.
package footprint
