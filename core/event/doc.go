// Package event carries what happens in a workspace to everyone who watches it.
//
// It owns the delivery per workspace, the 500 most recent events, and the heartbeat every 30 seconds.
// Publishing never waits for a reader: each reader has a bounded queue and is closed when it is full, so a
// stalled reader does not affect the others. Events of other servers of the deployment come and go through
// a Relay.
//
// It does not know how an event travels to a client (package httpapi writes the stream), and it promises
// nothing across restarts: a reader that was closed opens a new subscription and receives what happens
// from then on.
package event
