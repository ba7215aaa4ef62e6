// Package event carries what happens in a workspace to everyone who watches it (docs/api.md 7).
//
// It owns the fan-out per workspace, the memory of the 500 most recent events, and the heartbeat
// of every 30 seconds. Whoever publishes never waits for a reader: each reader has a bounded queue
// and is cut when the queue is full, so one stalled reader costs the others nothing.
//
// It does not know how an event travels to a client: package httpapi writes the stream. It makes
// no promise across restarts: nothing here is durable, and a reader that was cut or dropped opens
// a new subscription and sees only what happens from then on (docs/api.md 7).
//
// It is apart because the packages that emit (apps, tools, chat) and the endpoint that streams must not
// know each other. Events of other servers of the same deployment come and go through a Relay.
package event
