package mcphttp

import (
	"context"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// capRetry is what a client is told when every session is taken: sessions end when their clients
// say so or go idle, so nobody knows better.
const capRetry = 10 * time.Second

// sessions is the set of this process's live sessions. Its cap is exact: a place is taken before
// the work of opening starts, and given back when it fails.
type sessions struct {
	max int

	mu       sync.Mutex
	live     map[string]*session
	places   int // taken: live sessions and those being opened
	seats    int // taken by streams that listen without a session
	refusing bool
	calls    int           // in flight, over all sessions
	drain    chan struct{} // closed when refusing and no call is in flight
}

func newSessions(limit int) *sessions {
	return &sessions{max: limit, live: map[string]*session{}, drain: make(chan struct{})}
}

// reserve takes a place for a session that is about to be opened, and counts its initialize as a
// call in flight.
func (l *sessions) reserve() *fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refusing {
		return shuttingDown()
	}
	if l.places >= l.max {
		return busy(fiber.StatusTooManyRequests, "too many sessions are open on this server; close one or try again later", capRetry)
	}
	l.places++
	l.calls++
	return nil
}

func shuttingDown() *fault {
	return busy(fiber.StatusServiceUnavailable, "the server is shutting down", 5*time.Second)
}

// release gives a reserved place back.
func (l *sessions) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.places--
}

// sit takes a seat for a stream that listens without a session. There are as many as sessions.
func (l *sessions) sit() *fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refusing {
		return shuttingDown()
	}
	if l.seats >= l.max {
		return busy(fiber.StatusTooManyRequests, "too many clients are listening on this server; try again later", capRetry)
	}
	l.seats++
	return nil
}

// rise gives a seat back.
func (l *sessions) rise() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seats--
}

// add makes a session on a reserved place findable. It is false once the server shuts down.
func (l *sessions) add(s *session) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refusing {
		return false
	}
	l.live[s.wire.id] = s
	return true
}

// remove takes a session out and gives its place back. It is false when somebody else did.
func (l *sessions) remove(s *session) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live[s.wire.id] != s {
		return false
	}
	delete(l.live, s.wire.id)
	l.places--
	return true
}

func (l *sessions) find(id []byte) *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.live[string(id)]
}

func (l *sessions) all() []*session {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*session, 0, len(l.live))
	for _, s := range l.live {
		all = append(all, s)
	}
	return all
}

func (l *sessions) records() []sessionstore.Record {
	var records []sessionstore.Record
	for _, s := range l.all() {
		records = append(records, s.snapshot())
	}
	return records
}

// begin counts calls that start. It is false once the server shuts down.
func (l *sessions) begin(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refusing {
		return false
	}
	l.calls += n
	return true
}

// finish counts calls that ended.
func (l *sessions) finish(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls -= n; l.refusing && l.calls == 0 {
		close(l.drain)
	}
}

// refuse lets nothing new start.
func (l *sessions) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refusing {
		return
	}
	if l.refusing = true; l.calls == 0 {
		close(l.drain)
	}
}

// drained waits, after refuse, until no call is in flight.
func (l *sessions) drained(ctx context.Context) error {
	select {
	case <-l.drain:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watch lets the answer of each call that has been silent for streamAfter begin as a stream, within a
// second more. It is here because a clock of each call's own would cost more than all else that happens
// while it waits.
func (l *sessions) watch(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			for _, s := range l.all() {
				s.streamSilent(now.Add(-streamAfter))
			}
		case <-ctx.Done():
			return
		}
	}
}
