package limits

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/ropewalk/ropewalk/core"
)

// Kind is a kind of resource with a limit on how many a principal may use at once.
type Kind string

// The kinds of limited resources.
const (
	Streams  Kind = "streams"  // event streams
	ChatRuns Kind = "chatRuns" // chat runs
	Calls    Kind = "calls"    // tool calls in flight
)

// Settings contains the limits for each principal, unless a field says otherwise. 0 means no limit.
type Settings struct {
	AtATime        map[Kind]int
	CallsPerSecond int // tool calls; a burst may be twice as large
	UnreadBytes    int // bytes of large responses that clients have not read yet, in total; each principal may use a quarter
}

// Limits counts what principals use. It is safe for concurrent use. A nil *Limits does not limit anything.
type Limits struct {
	settings Settings
	calls    *Rates // nil for no limit
	unread   unread

	mu   sync.Mutex
	used map[use]int
}

type use struct {
	kind      Kind
	principal string
}

// retryAfter is the delay that clients are asked to wait if no place is free. It is a guess, because the server cannot
// predict when a place becomes free.
const retryAfter = 2 * time.Second

// New returns Limits with the given shares.
func New(s Settings) *Limits {
	l := &Limits{settings: s, used: make(map[use]int), unread: unread{by: make(map[string]int)}}
	if n := s.CallsPerSecond; n > 0 {
		l.calls = NewRates(rate.Limit(n), 2*n)
	}
	return l
}

// Share returns how many places of a kind one principal may use at once; 0 means no limit.
func (l *Limits) Share(kind Kind) int {
	if l == nil {
		return 0
	}
	return l.settings.AtATime[kind]
}

// Acquire takes one place of a kind for a principal. The error is core.CodeRateLimited if the principal is already
// using its whole share. The caller must call release exactly once.
func (l *Limits) Acquire(kind Kind, principal string) (release func(), err error) {
	if l == nil || l.settings.AtATime[kind] == 0 {
		return func() {}, nil
	}
	share, u := l.settings.AtATime[kind], use{kind, principal}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used[u] >= share {
		return nil, core.Errorf(core.CodeRateLimited, "too many %s at once: the limit is %d (limits.%s)", name(kind), share, kind).WithRetryAfter(retryAfter)
	}
	l.used[u]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.used[u]--; l.used[u] == 0 {
			delete(l.used, u)
		}
	}, nil
}

// AllowCall counts one tool call by a principal. The error is core.CodeRateLimited, with the time to wait, if the
// principal makes too many calls per second.
func (l *Limits) AllowCall(principal string) error {
	if l == nil || l.calls == nil {
		return nil
	}
	if wait := l.calls.Allow(principal, 1); wait > 0 {
		return core.Errorf(core.CodeRateLimited, "too many tool calls: the limit is %d per second (limits.callsPerSecond)", l.settings.CallsPerSecond).WithRetryAfter(wait)
	}
	return nil
}

func name(kind Kind) string {
	switch kind {
	case ChatRuns:
		return "chat runs"
	case Calls:
		return "tool calls"
	default:
		return string(kind)
	}
}
