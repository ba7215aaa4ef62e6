package sessionstoretest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

// takenOver is glass with the capability "replace"; with no lie it keeps the contract.
type takenOver struct {
	glass
	late    bool                              // compares before it writes, not in one step
	allow   func(have, expected string) bool  // which owners it lets replace
	write   func(p *pane, r replacement)      // how it writes
	revives func(p *pane, now time.Time) bool // which sessions it brings back
	invalid bool                              // takes any ttl
}

// replacement is one call of Replace.
type replacement struct {
	rec sessionstore.Record
	ttl time.Duration
	now time.Time
}

func (g *takenOver) Replace(_ context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (bool, error) {
	if err := sessionstore.CheckReplace(rec, ttl); err != nil && !g.invalid {
		return false, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	p, now := g.pane(rec.ID), time.Now()
	revived := g.revives != nil && g.revives(p, now)
	if !p.alive(now) && !revived {
		return false, plugins.ErrNotFound
	}
	if revived {
		*p = pane{put: true, rec: rec, expires: now.Add(time.Hour)}
	}
	have := p.rec.Owner
	if g.late {
		g.mu.Unlock()
		time.Sleep(time.Millisecond) //nolint:forbidigo // the clock of the bubble
		g.mu.Lock()
	}
	if g.allow == nil && have != owner || g.allow != nil && !g.allow(have, owner) {
		return false, nil
	}
	if g.write != nil {
		g.write(p, replacement{rec, ttl, now})
		return true, nil
	}
	p.rec = rec
	if ttl > 0 {
		p.expires = now.Add(ttl)
	}
	return true, nil
}

func replaceLiars() []liar {
	honestly := func(g *takenOver) *takenOver {
		if g.touch == nil {
			g.touch = honest
		}
		return g
	}
	writes := func(lie func(p *pane, r replacement)) *takenOver { return honestly(&takenOver{write: lie}) }
	return []liar{
		{lie: "owner and state come back", store: &cutsState{*honestly(&takenOver{})}},
		{lie: "a replace writes every field when the owner is the expected one", store: writes(func(p *pane, r replacement) {
			info := p.rec.ClientInfo
			p.rec = r.rec
			p.rec.ClientInfo = info
			if r.ttl > 0 {
				p.expires = r.now.Add(r.ttl)
			}
		})},
		{lie: "a replace writes nothing when the owner is another one", store: honestly(&takenOver{allow: strings.EqualFold})},
		{lie: "a replace does not make a session that never was", store: honestly(&takenOver{revives: func(p *pane, _ time.Time) bool { return !p.put }})},
		{lie: "a replace does not bring a deleted session back", store: honestly(&takenOver{revives: func(p *pane, _ time.Time) bool { return p.deleted }})},
		{lie: "a replace does not bring an expired session back", store: honestly(&takenOver{revives: func(p *pane, now time.Time) bool { return p.put && !p.deleted && p.over(now) }})},
		{lie: "a replace with a lifetime starts it anew", store: writes(func(p *pane, r replacement) { p.rec = r.rec })},
		{lie: "a replace without a lifetime leaves it as it is", store: writes(func(p *pane, r replacement) {
			p.rec, p.expires = r.rec, r.now.Add(max(r.ttl, 5*time.Minute))
			if r.ttl > 0 {
				p.expires = r.now.Add(r.ttl)
			}
		})},
		{lie: "a touch keeps owner and state", store: &takenOver{glass: glass{touch: func(p *pane, t sessionstore.Touch, now time.Time) {
			honest(p, t, now)
			p.rec.Owner = ""
		}}}},
		{lie: "a replace that is not valid is invalid", store: honestly(&takenOver{invalid: true})},
		{lie: "of replaces at the same moment one alone writes", store: honestly(&takenOver{late: true})},
	}
}

// cutsState keeps 8 KiB of a state.
type cutsState struct{ takenOver }

func (s *cutsState) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	rec.State = rec.State[:min(len(rec.State), 8<<10)]
	return s.takenOver.Put(ctx, rec, ttl)
}

func TestEachLiarAboutReplacingIsCaughtByItsCheck(t *testing.T) {
	honestStore := &takenOver{glass: glass{touch: honest}}
	for _, liar := range append(replaceLiars(), liar{lie: "", store: honestStore}) {
		t.Run(liar.lie, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				caught := kit.Failed(kit.Run(t.Context(), cheap(), sessionstoretest.Subject{Store: liar.store}))
				if want := slices.DeleteFunc([]string{liar.lie}, func(name string) bool { return name == "" }); !slices.Equal(caught, want) {
					t.Errorf("caught by %q, want %q", caught, want)
				}
			})
		})
	}
}

const replacesApart = "of replaces of two processes at the same moment one alone writes"

func TestALiarAboutReplacingBetweenProcessesIsCaught(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &takenOver{glass: glass{touch: honest}, late: true}
		subject := sessionstoretest.Subject{Store: store, Durable: true, Open: func(context.Context) (*sessionstoretest.Process, error) {
			return &sessionstoretest.Process{Store: store, Close: func() {}}, nil
		}}
		caught := kit.Failed(kit.Run(t.Context(), sessionstoretest.Checks(), subject))
		if !slices.Contains(caught, replacesApart) {
			t.Errorf("caught by %q", caught)
		}
	})
}
