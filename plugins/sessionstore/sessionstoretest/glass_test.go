package sessionstoretest_test

import (
	"context"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// glass is a store that shows its inside: it remembers even what is deleted or over, so that a
// touch can lie about it. With a touch that is honest, it keeps the whole contract.
type glass struct {
	mu       sync.Mutex
	sessions map[string]*pane
	touch    func(p *pane, t sessionstore.Touch, now time.Time)
}

// pane is one session, or an id that was only asked for.
type pane struct {
	rec     sessionstore.Record
	expires time.Time
	put     bool
	deleted bool
}

func (p *pane) over(now time.Time) bool { return !p.expires.After(now) }

func (p *pane) alive(now time.Time) bool { return p.put && !p.deleted && !p.over(now) }

func (p *pane) newest(at time.Time) {
	if at.After(p.rec.LastAccessedAt) {
		p.rec.LastAccessedAt = at
	}
}

func (g *glass) pane(id string) *pane {
	if g.sessions == nil {
		g.sessions = map[string]*pane{}
	}
	if g.sessions[id] == nil {
		g.sessions[id] = &pane{}
	}
	return g.sessions[id]
}

func (g *glass) Put(_ context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if err := sessionstore.CheckPut(rec, ttl); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	*g.pane(rec.ID) = pane{put: true, rec: rec, expires: time.Now().Add(ttl)}
	return nil
}

func (g *glass) Get(_ context.Context, id string) (sessionstore.Record, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := g.pane(id); p.alive(time.Now()) {
		return p.rec, nil
	}
	return sessionstore.Record{}, plugins.ErrNotFound
}

func (g *glass) Touch(_ context.Context, batch []sessionstore.Touch) error {
	if err := sessionstore.CheckTouch(batch); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range batch {
		g.touch(g.pane(t.ID), t, time.Now())
	}
	return nil
}

func (g *glass) Delete(_ context.Context, id string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pane(id).deleted = true
	return nil
}
