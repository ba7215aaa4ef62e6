package limits

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
)

// Reasons why a user cannot take a place.
var (
	ErrFull  = errors.New("all places are taken")
	ErrShare = errors.New("the user's share is taken")
)

// Places bounds the use of a resource: there is a fixed number of places, and each user can take only a share of them.
// The empty user is the server itself, which can take all of them. Places is safe for concurrent use.
type Places struct {
	count, share int

	mu      sync.Mutex
	used    int
	users   map[string]int
	waiting []*waiter // longest wait first
}

type waiter struct {
	user  string
	given chan struct{} // closed when the waiter gets a place
}

// NewPlaces returns Places with count places, all of them free. Each user can take at most share of them. A share of 0
// means a quarter, but at least one.
func NewPlaces(count, share int) *Places {
	return &Places{count: count, share: cmp.Or(share, max(1, count/4)), users: map[string]int{}}
}

// Share returns how many places one user may have.
func (p *Places) Share() int { return p.share }

// Count returns how many places there are.
func (p *Places) Count() int { return p.count }

// Used returns how many places are taken.
func (p *Places) Used() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// Take takes a place for a user, who must Release it. It returns ErrFull or ErrShare immediately.
func (p *Places) Take(user string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.take(user)
}

func (p *Places) take(user string) error {
	switch {
	case p.used >= p.count:
		return ErrFull
	case user != "" && p.users[user] >= p.share:
		return ErrShare
	}
	p.used++
	p.users[user]++
	return nil
}

// Await is like Take, but waits for a place until ctx ends.
func (p *Places) Await(ctx context.Context, user string) error {
	p.mu.Lock()
	if p.take(user) == nil {
		p.mu.Unlock()
		return nil
	}
	w := &waiter{user, make(chan struct{})}
	p.waiting = append(p.waiting, w)
	p.mu.Unlock()
	select {
	case <-w.given:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waiting, w)
	if i < 0 { // Release gave w a place in the meantime
		return nil
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	return p.take(user) // take fails again, and returns the reason
}

// Release frees a user's place, and gives it to the longest waiter that may take it.
func (p *Places) Release(user string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used--
	if p.users[user]--; p.users[user] == 0 {
		delete(p.users, user)
	}
	for i, w := range p.waiting {
		if p.take(w.user) == nil {
			p.waiting = slices.Delete(p.waiting, i, i+1)
			close(w.given)
			return
		}
	}
}
