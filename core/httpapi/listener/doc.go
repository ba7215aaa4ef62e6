// Package listener accepts the HTTP server's connections, limits their number, and makes them cheap to use and safe to
// close.
//
// It owns the caps on connections, the eviction of idle connections, the recovery from running out of file descriptors,
// lazy deadlines and lingering closes. It does not own HTTP itself.
package listener
