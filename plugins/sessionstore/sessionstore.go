package sessionstore

import (
	"context"
	"time"
)

// Store records MCP sessions. It must be safe for concurrent use.
// Rules for every method:
//   - The context's deadline is honored: a call returns soon after it passes.
//   - A call that could not reach the backend returns plugins.ErrUnavailable (wrapped or plain). The
//     server then responds with 503 and keeps its own sessions. Never return plugins.ErrNotFound in this
//     case: a session that is not found is closed.
//   - Every later read sees a write that returned nil, from this process or another one that shares the
//     backend. If the store is Durable, the write survives the end of the process.
//
// A Store does not authorize: the server compares Subject, Issuer and WorkspaceID with those of the
// caller. It does not list sessions.
type Store interface {
	// Put creates or replaces the record with the ID rec.ID. The record expires ttl from now unless a Touch extends it.
	// Record and lifetime are written in one step: a reader never sees one without the other. Lifetimes of up to 30
	// days are exact to the second. An empty ID, or a ttl that is not positive, is plugins.ErrInvalid.
	Put(ctx context.Context, rec Record, ttl time.Duration) error

	// Get returns the record exactly as it was put (times to the millisecond), with the LastAccessedAt of the latest
	// Touch. Any field may hold any text. It returns plugins.ErrNotFound for an unknown ID, after Delete, and once the
	// lifetime is over (not before, and at most a second later), but only if the backend was actually read.
	Get(ctx context.Context, id string) (Record, error)

	// Touch sets LastAccessedAt and restarts the lifetime of each session of the batch that exists. IDs that do not
	// exist are skipped: a Touch never recreates a session, not even one that is deleted at the same moment. An older
	// LastAccessedAt never replaces a newer one, but the lifetime restarts nevertheless. A batch has 0 to 1,000 entries
	// and may have several for one ID. If any TTL is not positive, Touch returns plugins.ErrInvalid and changes
	// nothing.
	Touch(ctx context.Context, batch []Touch) error

	// Delete removes a session. It is not an error if there is none with that ID.
	Delete(ctx context.Context, id string) error
}

// Record is one session. Without its State, it takes a few hundred bytes.
type Record struct {
	ID              string // at least 128 random bits, opaque; at most 128 bytes
	Subject         string // identifies the person who opened it
	Issuer          string
	WorkspaceID     string
	ProtocolVersion string // the negotiated MCP revision
	ClientInfo      ClientInfo
	CreatedAt       time.Time
	LastAccessedAt  time.Time

	// Owner is the server that has the session, "" for none. State is what a server needs to continue it, at most 64
	// KiB. Only a Replacer has to keep them.
	Owner string
	State string

	// ExpiresAt is when the lifetime is over, by the clock of the store. Only Get sets it. It is zero if the store does
	// not know, and Put ignores it.
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

	// Durable does nothing: a store has the capability if it has the method.
	Durable()
}

// Replacer is the optional capability of a store that lets servers take over each other's sessions.
type Replacer interface {
	Store

	// Replace overwrites the record with rec's ID if that record's Owner is owner, and reports whether it did.
	// Comparing and writing are atomic: of several calls that expect the same owner, in this process or another one,
	// only one writes. The lifetime restarts with ttl; if ttl is 0, it does not change. Replace returns
	// plugins.ErrNotFound whenever Get would, so it never recreates a session. An empty ID, or a negative ttl, is
	// plugins.ErrInvalid.
	Replace(ctx context.Context, rec Record, ttl time.Duration, owner string) (bool, error)
}
