package intake

import (
	"context"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// lane is the places for requests that are sending a large body.
type lane struct {
	places chan struct{}

	mu      sync.Mutex
	clients map[string]*share
}

// share is the places that one client has or waits for.
type share struct {
	places  chan struct{}
	working *semaphore.Weighted // bytes of the client's large bodies whose requests are not answered yet
	users   int                 // under lane.mu; the share is forgotten with the last one
}

func newLane() *lane {
	return &lane{places: make(chan struct{}, LargeBodies), clients: make(map[string]*share)}
}

// acquire waits for a place of the client's share and then for one of the lane: core.CodeUnavailable
// when that takes longer than patience.
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

// begin waits until the large bodies of the client whose requests are not answered yet, with this one, are not more
// than workingBodies of maxWeight, for workPause per MiB of this one at most: requests that take the processor long come
// one after the other, so that other clients get it in between, and those that wait for something hold up nobody for
// long. answered must be called when the request has its response.
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

// workingBodies is how many of a client's bodies of maxWeight or more the server and its apps work on at a time: what
// keeps the processors of the machine busy.
func workingBodies() int { return max(ownBodies, runtime.GOMAXPROCS(0)) }

func (l *lane) join(client string) *share {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.clients[client]
	if s == nil {
		s = &share{places: make(chan struct{}, ownBodies), working: semaphore.NewWeighted(int64(workingBodies()) * maxWeight)}
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

// budget bounds the bytes of large bodies that requests in flight hold.
type budget struct {
	bytes *semaphore.Weighted
	size  int64
}

// newBudget returns a budget; size 0 is one without a bound.
func newBudget(size int64) *budget {
	if size == 0 {
		return &budget{}
	}
	return &budget{bytes: semaphore.NewWeighted(size), size: size}
}

// acquire waits until n bytes are free: core.CodeUnavailable when that takes longer than patience. A body
// larger than the whole budget takes all of it.
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
