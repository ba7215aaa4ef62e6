package intake

import (
	"sync"
	"time"
)

// lane is the places for requests that are sending a large body.
type lane struct {
	places chan struct{}

	mu      sync.Mutex
	clients map[string]*share
}

// share is the places that one client has or waits for.
type share struct {
	places chan struct{}
	users  int // under lane.mu; the share is forgotten with the last one
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

func (l *lane) join(client string) *share {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.clients[client]
	if s == nil {
		s = &share{places: make(chan struct{}, ownBodies)}
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
