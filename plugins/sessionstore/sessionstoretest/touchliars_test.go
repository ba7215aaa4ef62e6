package sessionstoretest_test

import (
	"time"

	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

func honest(p *pane, t sessionstore.Touch, now time.Time) {
	if p.alive(now) {
		p.newest(t.LastAccessedAt)
		p.expires = now.Add(t.TTL)
	}
}

func lifetimeOnly(p *pane, t sessionstore.Touch, now time.Time) {
	if p.alive(now) {
		p.expires = now.Add(t.TTL)
	}
}

// timeOnly still shortens, and still prolongs for older times: those promises have liars of their own.
func timeOnly(p *pane, t sessionstore.Touch, now time.Time) {
	expires := p.expires
	newer := t.LastAccessedAt.After(p.rec.LastAccessedAt)
	if honest(p, t, now); newer && p.expires.After(expires) {
		p.expires = expires
	}
}

func forgetsClient(p *pane, t sessionstore.Touch, now time.Time) {
	honest(p, t, now)
	p.rec.ClientInfo = sessionstore.ClientInfo{}
}

func neverShortens(p *pane, t sessionstore.Touch, now time.Time) {
	expires := p.expires
	if honest(p, t, now); p.expires.Before(expires) {
		p.expires = expires
	}
}

// trustsClocksSetBack takes a time that is a little older for a late one, and one that is much
// older for a clock that was set back.
func trustsClocksSetBack(p *pane, t sessionstore.Touch, now time.Time) {
	if p.rec.LastAccessedAt.Sub(t.LastAccessedAt) > 30*time.Second {
		p.rec.LastAccessedAt = t.LastAccessedAt
	}
	honest(p, t, now)
}

func ignoresOlder(p *pane, t sessionstore.Touch, now time.Time) {
	if t.LastAccessedAt.After(p.rec.LastAccessedAt) {
		honest(p, t, now)
	}
}

func revivesDeleted(p *pane, t sessionstore.Touch, now time.Time) {
	p.deleted = false
	honest(p, t, now)
}

func revivesExpired(p *pane, t sessionstore.Touch, now time.Time) {
	if p.put && p.over(now) {
		p.expires = now.Add(t.TTL)
	}
	honest(p, t, now)
}

func makesStrangers(p *pane, t sessionstore.Touch, now time.Time) {
	if !p.put {
		*p = pane{put: true, rec: sessionstore.Record{ID: t.ID, Subject: "nobody"}, expires: now.Add(t.TTL)}
	}
	honest(p, t, now)
}
