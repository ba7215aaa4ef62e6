package apps

import (
	"testing"

	"github.com/ropewalk/ropewalk/core/apps/interact"
)

func TestSubscriptionsAreCountedForTheAppAndForEachSession(t *testing.T) {
	s, app := newSubscriptions(), interact.AppRef{Workspace: "ws_a", Name: "notes"}
	for _, c := range []struct {
		session string
		first   bool
	}{{"alice", true}, {"bob", false}, {"alice", false}} {
		if first, err := s.Add(sessionKey{app, c.session}, "a://x"); err != nil || first != c.first {
			t.Errorf("adding one of %s: first is %t (%v), want %t", c.session, first, err, c.first)
		}
	}
	for _, c := range []struct {
		session                  string
		lastOfApp, lastOfSession bool
	}{{"carol", false, false}, {"alice", false, false}, {"bob", false, true}, {"alice", true, true}, {"alice", false, false}} {
		lastOfApp, lastOfSession := s.Remove(sessionKey{app, c.session}, "a://x")
		if lastOfApp != c.lastOfApp || lastOfSession != c.lastOfSession {
			t.Errorf("removing one of %s: last of the app is %t, of the session %t", c.session, lastOfApp, lastOfSession)
		}
	}
	if n := len(s.byApp) + len(s.bySession); n != 0 {
		t.Errorf("%d counts are left", n)
	}
}
