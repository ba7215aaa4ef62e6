package sessionstore

import (
	"context"
	"time"
)

// Store records MCP sessions. It must be safe for concurrent use.
//
// What must hold, for every method:
//   - The context's deadline is honoured: a call returns soon after it passes.
//   - A call that could not reach the backend returns plugins.ErrUnavailable (wrapped or plain). The
//     server answers 503 then and keeps its own sessions. Never return plugins.ErrNotFound for it: a
//     session that is not found is closed.
//   - A write that returned nil is seen by every later read, from this process or another one
//     that shares the backend. It survives the end of the process if the store is Durable.
//
// A Store does not authorize: the server compares Subject, Issuer and WorkspaceID with those of the
// caller. It does not list sessions.
type Store interface {
	// Put creates or replaces the record with the id rec.ID. The record expires ttl from now unless a
	// Touch extends it. Record and lifetime are written in one step: a reader never sees one without
	// the other. Lifetimes of up to 30 days are exact to the second. An empty ID, or a ttl that is not
	// positive, is plugins.ErrInvalid.
	Put(ctx context.Context, rec Record, ttl time.Duration) error

	// Get returns the record exactly as it was put (times to the millisecond), with the
	// LastAccessedAt of the latest Touch. Any field may hold any text. It returns plugins.ErrNotFound
	// for an unknown id, after Delete, and once the lifetime is over (not before, and at most a second
	// after), and only when the backend was read.
	Get(ctx context.Context, id string) (Record, error)

	// Touch sets LastAccessedAt and restarts the lifetime of each session of the batch that exists. Ids
	// that do not exist are skipped: a Touch never recreates a session, not even one that is deleted at
	// the same moment. An older LastAccessedAt never replaces a newer one, but the lifetime restarts
	// nevertheless. A batch has 0 to 1,000 entries and may have several for one id. If any TTL is not
	// positive, Touch returns plugins.ErrInvalid and changes nothing.
	Touch(ctx context.Context, batch []Touch) error

	// Delete removes a session. It is not an error when there is none with that id.
	Delete(ctx context.Context, id string) error
}

// Record is one session. It has a few hundred bytes, and its State.
type Record struct {
	ID              string // at least 128 random bits, opaque; at most 128 bytes
	Subject         string // of the person who opened it
	Issuer          string
	WorkspaceID     string
	ProtocolVersion string // the negotiated MCP revision
	ClientInfo      ClientInfo
	CreatedAt       time.Time
	LastAccessedAt  time.Time

	// Owner is the server that has the session, "" for none, and State what a server needs to go on
	// with it, at most 64 KiB. Only a Replacer has to keep them.
	Owner string
	State string

	// ExpiresAt is when the lifetime is over, by the clock of the store. Get alone sets it; it is zero
	// when the store does not know, and Put ignores it.
	ExpiresAt time.Time `json:"-"`
}

// ClientInfo is the clientInfo of the initialize request.
type ClientInfo struct {
	Name    string
	Version string
}

// Touch extends one session.
type Touch struct {
	ID             string
	LastAccessedAt time.Time
	TTL            time.Duration // counted from the moment the store handles the touch
}

// Durable is the optional capability of a store whose records outlive its process, in a backend that
// several processes may share.
type Durable interface {
	Store

	// Durable does nothing: a store has the capability when it has the method.
	Durable()
}

// Replacer is the optional capability of a store that lets servers take over each other's sessions.
type Replacer interface {
	Store

	// Replace writes rec over the record with its id if the Owner of that one is owner, and reports
	// whether it did. Comparing and writing are one step: of several calls that expect the same owner,
	// in this process or another one, one alone writes. The lifetime restarts with ttl; it stays as it
	// is when ttl is 0. Where Get would return plugins.ErrNotFound, Replace does: it never recreates a
	// session. An empty ID, or a negative ttl, is plugins.ErrInvalid.
	Replace(ctx context.Context, rec Record, ttl time.Duration, owner string) (bool, error)
}
