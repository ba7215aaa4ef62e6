package interact

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/core/link"
)

// pooled is one instance of the session pool.
type pooled struct {
	key       poolKey
	exclusive bool               // it serves one call at a time
	cancel    context.CancelFunc // gives up its start
	ready     chan struct{}      // closed when instance or err is set
	instance  Instance
	err       error
	failedAt  time.Time                // when its start failed
	newest    atomic.Pointer[InFlight] // the newest call: its client gets requests that belong to no call

	users       int         // calls in flight; guarded by the pool's mutex, as the rest
	unusedSince time.Time   // when the last call ended
	timer       *time.Timer // ends the instance after a time without use; nil while in use
}

// isOver reports whether the instance has ended, or failed so long ago that it may be tried again.
func (x *pooled) isOver() bool {
	switch {
	case !isClosed(x.ready):
		return false
	case x.err != nil:
		return time.Since(x.failedAt) > restartPause
	}
	return isClosed(x.instance.Done())
}

// session says what the instance is started for.
func (x *pooled) session() Session {
	if x.key.session == "" {
		return Session{}
	}
	return Session{ID: x.key.session, OneCall: x.exclusive, ClientCapabilities: x.newest.Load().client.capabilities, OnRequest: x.answer}
}

// answer answers a request of the instance of one session: it goes to that session's client, with the
// newest of the calls that it may belong to.
func (x *pooled) answer(ctx context.Context, q link.Question) (json.RawMessage, error) {
	f, calls := x.newest.Load(), inFlightOf(q)
	if n := len(calls); n > 0 {
		f = calls[n-1]
	}
	return x.key.dialog.answer(ctx, q, f, calls)
}
