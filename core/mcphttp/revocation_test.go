package mcphttp

import (
	"context"
	"errors"
	"strings"
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

// interrupted is an access in which something happens just after a token was verified.
type interrupted struct {
	*people
	meanwhile func()
}

func (i *interrupted) MCP(ctx context.Context, bearer, resource string) (core.Identity, error) {
	id, err := i.people.MCP(ctx, bearer, resource)
	i.meanwhile()
	return id, err
}

func TestWhatIsOpenedDuringARevocationDoesNotOutliveIt(t *testing.T) {
	for _, c := range []struct {
		name    string
		revoked bool
		left    int // sessions
	}{
		{"the caller is revoked", true, 0},
		{"another user is revoked", false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			access := &interrupted{people: &people{}, meanwhile: func() {}}
			r := start(t, func(o *Options) { o.Access = access })
			access.meanwhile = func() {
				access.gone.Store(c.revoked)
				r.endpoint.EndRevoked(t.Context(), "usr_bob")
			}
			if resp, _ := r.say("POST", alice, hello("2025-11-25")); resp.StatusCode != 200 || r.endpoint.Sessions() != c.left {
				t.Errorf("initialize: %d, %d sessions are left, want %d", resp.StatusCode, r.endpoint.Sessions(), c.left)
			}
			if !c.revoked {
				return
			}
			body, header := statelessRequest("subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
			if _, said := r.say("POST", alice, body, header...); !strings.Contains(said, "acknowledged") { // it ends
				t.Errorf("listen: %s", said)
			}
		})
	}
}
