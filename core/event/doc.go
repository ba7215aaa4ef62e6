// Package event delivers what happens in a workspace to everyone who watches it.
//
// It handles delivery per workspace, the 500 most recent events, and the heartbeat every 30 seconds. Publishing
// never waits for a reader: each reader has a bounded queue and is closed when the queue is full, so a stalled
// reader does not affect the others. A Relay exchanges events with the deployment's other servers.
//
// It does not know how an event reaches a client (package httpapi writes the stream), and it guarantees nothing
// across restarts. A reader that was closed opens a new subscription and receives events from then on.
package event
