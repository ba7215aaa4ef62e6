package mcphttp

import (
	"errors"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/mcphttp/session"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

func TestOneUserCannotTakeEverySession(t *testing.T) {
	set := session.NewSet(3, 2)
	for range 2 {
		if err := set.Reserve("alice"); err != nil {
			t.Fatal(err)
		}
	}
	if err := set.Reserve("alice"); !errors.Is(err, session.ErrShare) {
		t.Errorf("a third one: %v", err)
	}
	if err := set.Reserve("bob"); err != nil {
		t.Errorf("another user: %v", err)
	}
	set.Release("alice")
	owner := core.Caller{Identity: core.Identity{User: core.User{ID: "bob"}}}
	s := session.New(owner, sessionstore.Record{ID: "s"}, nil)
	if !set.Add(s) || !set.Remove(s) {
		t.Fatal("a session was not added and removed")
	}
	for range 2 {
		if err := set.Reserve("bob"); err != nil {
			t.Errorf("after one was removed: %v", err)
		}
	}
}
