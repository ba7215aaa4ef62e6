// Package session holds the MCP sessions of this process: their owners, in-flight calls, streams and pending questions,
// the capped set of all sessions, the writer that keeps the session store up to date, and the lease that shows the
// servers of a store which of them has a session.
//
// It does not know HTTP or the methods of MCP: mcphttp finds the session of a request and runs its calls. Revision
// 2026-07-28 has no sessions. All that this package has for it is the cap on listeners.
package session
