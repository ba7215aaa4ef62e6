package sessionstore

import (
	"context"
	"time"
)

// Store remembers MCP sessions. It must be safe for concurrent use.
//
// What must hold, for every method:
//   - The context's deadline is honoured: a call returns soon after it passes.
//   - An error that means "the backend could not be asked" is plugins.ErrUnavailable (wrapped or
//     plain). A server answers 503 to it and keeps its own sessions alive; any other answer than
//     the truth ends somebody's session.
//   - A write that returned nil is seen by every later read, from this process or another one
//     that shares the backend. It survives the end of the process if the store is Durable.
//
// What a Store does not do: it does not check who asks (the server compares Subject, Issuer and
// WorkspaceID with the caller's), and it lists nothing.
type Store interface {
	// Put writes rec under rec.ID, whether or not it exists, to live for ttl from now unless a
	// Touch prolongs it. Record and lifetime are written as one: no moment shows one without the
	// other. Lifetimes of up to 30 days are exact to the second. An empty ID or a ttl that is not
	// positive is plugins.ErrInvalid.
	Put(ctx context.Context, rec Record, ttl time.Duration) error

	// Get returns the record exactly as it was put (times to the millisecond), with the
	// LastAccessedAt of the latest Touch. Any text may be in any field. plugins.ErrNotFound once the
	// lifetime is over (not before it, and at most a second later), after Delete, and for an id that
	// never was; the backend has then really been asked.
	Get(ctx context.Context, id string) (Record, error)

	// Touch sets LastAccessedAt and starts the lifetime anew for each session of the batch that
	// exists. Ids that do not exist are passed over: a Touch never brings a session back, not even
	// one that is deleted at the same moment. An older LastAccessedAt never replaces a newer one,
	// but starts the lifetime anew all the same. A batch may hold 1,000 entries, or none; an id may
	// come twice. A TTL that is not positive is plugins.ErrInvalid, and nothing of the batch is done.
	Touch(ctx context.Context, batch []Touch) error

	// Delete removes a session. Removing what is not there is not an error.
	Delete(ctx context.Context, id string) error
}

// Record is what is remembered of one session. It is small on purpose: a few hundred bytes.
type Record struct {
	ID              string // at least 128 random bits, opaque; at most 128 bytes
	Subject         string // who opened it, as its issuer names them
	Issuer          string
	WorkspaceID     string
	ProtocolVersion string // the negotiated MCP revision
	ClientInfo      ClientInfo
	CreatedAt       time.Time
	LastAccessedAt  time.Time

	// ExpiresAt is when the lifetime is over, by the clock of the store. Get alone sets it; it is zero
	// when the store does not know, and Put ignores it.
	ExpiresAt time.Time `json:"-"`
}

// ClientInfo is what the client said of itself in initialize.
type ClientInfo struct {
	Name    string
	Version string
}

// Touch prolongs one session.
type Touch struct {
	ID             string
	LastAccessedAt time.Time
	TTL            time.Duration // counted from the moment the store handles the touch
}

// Durable is the optional capability of a store whose records outlive its process, in a backend that
// several processes may share.
type Durable interface {
	Store

	// Durable does nothing; having it is the capability.
	Durable()
}
