// Package session holds the MCP sessions of this process: who owns each, which calls are in flight,
// where the messages of the server go, which questions wait for the client, the set of all sessions
// with its cap, the writer that keeps the session store up to date, and the lease by which the servers
// of a store know whose session is whose.
//
// It does not know HTTP or the methods of MCP: mcphttp finds the session of a request and runs its
// calls. The revision 2026-07-28 has no sessions; of it only the cap on listeners is here.
package session
