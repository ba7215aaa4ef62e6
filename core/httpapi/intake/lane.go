package intake

import (
	"context"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ropewalk/ropewalk/core"
)

// lane holds the places for requests that are sending a large body.
type lane struct {
	places chan struct{}
	limit  int64 // limit for one client's large bodies in memory, in bytes; 0 means no limit

	mu      sync.Mutex
	clients map[string]*share
}

// share holds the places that one client has or is waiting for.
type share struct {
	places  chan struct{}
	kept    *budget             // bytes of the client's large bodies in memory
	working *semaphore.Weighted // bytes of the client's large bodies whose requests have no response yet
	users   int                 // guarded by lane.mu; the share is dropped with its last user
}

func newLane(limit int64) *lane {
	return &lane{places: make(chan struct{}, LargeBodies), limit: limit, clients: make(map[string]*share)}
}

// acquire waits for a place in the client's share and then for one in the lane. It returns core.CodeUnavailable if this
// takes longer than patience.
func (l *lane) acquire(client string, patience time.Duration) (release func(), err error) {
	own := l.join(client)
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case own.places <- struct{}{}:
	case <-limit.C:
		l.leave(client, own)
		return nil, busy()
	}
	select {
	case l.places <- struct{}{}:
	case <-limit.C:
		<-own.places
		l.leave(client, own)
		return nil, busy()
	}
	return func() {
		<-l.places
		<-own.places
		l.leave(client, own)
	}, nil
}

// keep counts a large body against the client's share of the memory for bodies. It returns core.CodeRateLimited if the
// share stays full for longer than patience.
func (l *lane) keep(client string, length int, patience time.Duration) (free func(), err error) {
	own := l.join(client)
	release, err := own.kept.acquire(length, patience)
	if err != nil {
		l.leave(client, own)
		return nil, core.Errorf(core.CodeRateLimited, "your requests in progress contain too much data: the limit is %d MiB per user", l.limit>>20).WithRetryAfter(patience)
	}
	return func() {
		release()
		l.leave(client, own)
	}, nil
}

// begin waits until the client's unanswered large bodies, including this one, weigh no more than workingBodies bodies
// of maxWeight. It waits at most workPause per MiB of this body. CPU-heavy requests of one client thus run one after
// another and leave time for other clients in between, while requests that only wait for something do not hold others
// up for long. answered must be called when the request has been answered.
func (l *lane) begin(client string, length int) (answered func()) {
	own, weight := l.join(client), int64(min(length, maxWeight))
	if !own.working.TryAcquire(weight) {
		ctx, cancel := context.WithTimeout(context.Background(), workPause*time.Duration(length)>>20)
		defer cancel()
		if own.working.Acquire(ctx, weight) != nil {
			l.leave(client, own)
			return func() {}
		}
	}
	return func() {
		own.working.Release(weight)
		l.leave(client, own)
	}
}

// workingBodies returns how many bodies of maxWeight or more the server and its apps process for one client at a time:
// enough to keep all processors busy.
func workingBodies() int { return max(ownBodies, runtime.GOMAXPROCS(0)) }

func (l *lane) join(client string) *share {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.clients[client]
	if s == nil {
		s = &share{kept: newBudget(l.limit), places: make(chan struct{}, ownBodies), working: semaphore.NewWeighted(int64(workingBodies()) * maxWeight)}
		l.clients[client] = s
	}
	s.users++
	return s
}

func (l *lane) leave(client string, s *share) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(l.clients, client)
	}
}

// budget bounds the bytes that the large bodies of in-flight requests occupy.
type budget struct {
	bytes *semaphore.Weighted
	size  int64
}

// newBudget returns a budget of size bytes; 0 means no limit.
func newBudget(size int64) *budget {
	if size == 0 {
		return &budget{}
	}
	return &budget{bytes: semaphore.NewWeighted(size), size: size}
}

// acquire waits until n bytes are free. It returns core.CodeUnavailable if this takes longer than patience. A body
// larger than the whole budget takes the whole budget.
func (b *budget) acquire(n int, patience time.Duration) (release func(), err error) {
	if b.bytes == nil {
		return func() {}, nil
	}
	weight := min(int64(n), b.size)
	if !b.bytes.TryAcquire(weight) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if b.bytes.Acquire(ctx, weight) != nil {
			return nil, busy()
		}
	}
	return func() { b.bytes.Release(weight) }, nil
}
