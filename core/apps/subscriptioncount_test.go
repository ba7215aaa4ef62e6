package apps

import (
	"fmt"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
)

func TestSubscriptionsAreCountedPerAppAndPerSession(t *testing.T) {
	s, app := newSubscriptions(), interact.AppRef{Workspace: "ws_a", Name: "notes"}
	for _, c := range []struct {
		session string
		first   bool
	}{{"alice", true}, {"bob", false}, {"alice", false}} {
		if first, err := s.Add(sessionKey{app, c.session}, c.session, "a://x"); err != nil || first != c.first {
			t.Errorf("adding one of %s: first is %t (%v), want %t", c.session, first, err, c.first)
		}
	}
	for _, c := range []struct {
		session                  string
		lastOfApp, lastOfSession bool
	}{{"carol", false, false}, {"alice", false, false}, {"bob", false, true}, {"alice", true, true}, {"alice", false, false}} {
		lastOfApp, lastOfSession := s.Remove(sessionKey{app, c.session}, c.session, "a://x")
		if lastOfApp != c.lastOfApp || lastOfSession != c.lastOfSession {
			t.Errorf("removing one of %s: last of the app is %t, of the session %t", c.session, lastOfApp, lastOfSession)
		}
	}
	if n := len(s.byApp) + len(s.bySession) + len(s.byUser); n != 0 {
		t.Errorf("%d counts remain", n)
	}
}

func TestOneUserCannotTakeAllSubscriptionsOfAnApp(t *testing.T) {
	s, app := newSubscriptions(), interact.AppRef{Workspace: "ws_a", Name: "notes"}
	add := func(user string, i int) error { // each from its own session
		_, err := s.Add(sessionKey{app, fmt.Sprint(user, i)}, user, fmt.Sprintf("a://%d", i))
		return err
	}
	for i := range maxSubscriptions / 4 {
		if err := add("mallory", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := add("mallory", maxSubscriptions); core.CodeOf(err) != core.CodeRateLimited {
		t.Errorf("one more: %v", err)
	}
	if err := add("mallory", 0); err != nil {
		t.Errorf("a resource that the user has subscribed to already: %v", err)
	}
	if err := add("victim", maxSubscriptions); err != nil {
		t.Errorf("another user: %v", err)
	}
	s.Remove(sessionKey{app, "mallory1"}, "mallory", "a://1")
	if err := add("mallory", maxSubscriptions); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}
