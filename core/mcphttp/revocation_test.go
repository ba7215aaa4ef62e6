package mcphttp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

func TestOneUserCannotTakeEverySession(t *testing.T) {
	set := newSessionSet(3, 2)
	for range 2 {
		if err := set.Reserve("alice"); err != nil {
			t.Fatal(err)
		}
	}
	if err := set.Reserve("alice"); !errors.Is(err, limits.ErrShare) {
		t.Errorf("a third place: %v", err)
	}
	if err := set.Reserve("bob"); err != nil {
		t.Errorf("another user: %v", err)
	}
	set.Release("alice")
	owner := core.Caller{Identity: core.Identity{User: core.User{ID: "bob"}}}
	s := newSession(owner, sessionstore.Record{ID: "s"}, nil)
	if !set.Add(s) || !set.Remove(s) {
		t.Fatal("a session could not be added and removed")
	}
	for range 2 {
		if err := set.Reserve("bob"); err != nil {
			t.Errorf("after one was removed: %v", err)
		}
	}
}

func TestOneUserCannotListenOnEveryStream(t *testing.T) {
	set := newSessionSet(3, 2)
	for range 2 {
		if err := set.Listen("mallory"); err != nil {
			t.Fatal(err)
		}
	}
	if err := set.Listen("mallory"); !errors.Is(err, limits.ErrShare) {
		t.Errorf("a third place: %v", err)
	}
	if err := set.Listen("victim"); err != nil {
		t.Errorf("another user: %v", err)
	}
	set.Unlisten("mallory")
	if err := set.Listen("mallory"); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
	if err := set.Listen("third"); !errors.Is(err, limits.ErrFull) || errors.Is(err, limits.ErrShare) {
		t.Errorf("beyond the limit for all users: %v", err)
	}
}

// interrupted is an Access that calls meanwhile just after it has verified a token.
type interrupted struct {
	*people
	meanwhile func()
}

func (i *interrupted) MCP(ctx context.Context, bearer, resource string) (core.Identity, error) {
	id, err := i.people.MCP(ctx, bearer, resource)
	i.meanwhile()
	return id, err
}

func TestStreamsOpenedDuringARevocationEndWithIt(t *testing.T) {
	for _, c := range []struct {
		name    string
		revoked bool
		left    int // sessions that remain
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
				t.Errorf("initialize: %d, %d sessions remain, want %d", resp.StatusCode, r.endpoint.Sessions(), c.left)
			}
			if !c.revoked {
				return
			}
			body, header := statelessRequest("subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
			if _, got := r.say("POST", alice, body, header...); !strings.Contains(got, "acknowledged") { // the stream ends
				t.Errorf("listen: %s", got)
			}
		})
	}
}

func TestTasksEndWhenTheirCallerLosesAccess(t *testing.T) {
	r := start(t, nil)
	r.endpoint.EndRevoked(t.Context(), "usr_bob")
	r.people.gone.Store(true)
	r.endpoint.EndRevoked(t.Context(), "usr_alice")
	r.fakeNamespace.mu.Lock()
	defer r.fakeNamespace.mu.Unlock()
	if got := strings.Join(r.fakeNamespace.revoked, " "); got != "usr_alice" {
		t.Errorf("the tasks of %q are ended", got)
	}
}

// changing is an Access whose result for every token can change.
type changing struct {
	*people
	says  atomic.Pointer[core.Error] // nil accepts every token
	asked atomic.Int64
}

func (c *changing) MCP(ctx context.Context, bearer, resource string) (core.Identity, error) {
	defer c.asked.Add(1)
	if err := c.says.Load(); err != nil {
		return core.Identity{}, err
	}
	return c.people.MCP(ctx, bearer, resource)
}

func TestALongLivedStreamEndsWhenItsTokenIsNoLongerAccepted(t *testing.T) {
	for name, open := range map[string]func(r *rig) *http.Response{
		"the stream of a session": func(r *rig) *http.Response { return r.ask("GET", r.join(alice), "") },
		"a stream without a session": func(r *rig) *http.Response {
			body, header := statelessRequest("subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
			return r.ask("POST", alice, body, header...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			access := &changing{people: &people{}}
			r := start(t, func(o *Options) { o.Access, o.identifyEvery = access, 10*time.Millisecond })
			resp := open(r)
			defer resp.Body.Close()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = io.Copy(io.Discard, resp.Body)
			}()
			asked := func() {
				t.Helper()
				before := access.asked.Load()
				testkit.Eventually(t, "the caller is identified again", func() bool { return access.asked.Load() > before+1 })
			}
			asked()
			access.says.Store(core.Errorf(core.CodeUnavailable, "the identity provider is down"))
			asked()
			select {
			case <-ended:
				t.Fatal("the stream ended while the caller was accepted, or could not be identified")
			default:
			}
			access.says.Store(core.Errorf(core.CodeUnauthenticated, "the token was revoked"))
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Error("the stream continues with a token that is refused")
			}
		})
	}
}

func TestCallersOfLongLivedStreamsAreIdentifiedEveryFourMinutes(t *testing.T) { // docs/api.md 2.6
	if got := start(t, nil).endpoint.o.identifyEvery; got != 4*time.Minute {
		t.Errorf("every %v", got)
	}
}

// demoting is an Access that has reduced every caller's role to member since their session was opened.
type demoting struct{ *people }

func (d demoting) Current(_ context.Context, c core.Caller) (core.Caller, error) {
	c.User.OrgRole = core.RoleMember
	return c, nil
}

func TestSessionsAndStreamsLoseRightsThatTheirCallersLost(t *testing.T) {
	r := start(t, func(o *Options) { o.Access = demoting{&people{}} })
	w := alice
	w.token = "admin"
	w = r.join(w)
	listening := w
	listening.session = ""
	body, header := statelessRequest("subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
	resp := r.ask("POST", listening, body, header...)
	defer resp.Body.Close()
	if got := next(t, bufio.NewScanner(resp.Body)); !strings.Contains(got, "acknowledged") {
		t.Fatalf("listen: %s", got)
	}
	roles := func() (all []core.Role) {
		h := r.endpoint.hub
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, reader := range h.watches["ws_one"].audience {
			reader.mu.Lock()
			all = append(all, reader.caller.User.OrgRole)
			reader.mu.Unlock()
		}
		return all
	}
	if got := roles(); !slices.Equal(got, []core.Role{core.RoleAdmin, core.RoleAdmin}) {
		t.Fatalf("the roles are %q", got)
	}
	r.endpoint.EndRevoked(t.Context(), "usr_admin")
	if got := roles(); !slices.Equal(got, []core.Role{core.RoleMember, core.RoleMember}) {
		t.Errorf("after the admin became a member, the session and the stream have the roles %q", got)
	}
	r.say("POST", w, `{"jsonrpc":"2.0","id":1,"method":"ping"}`) // the token contains the role
	if got := roles(); !slices.Contains(got, core.RoleAdmin) {
		t.Errorf("after a request of an admin, the roles are %q", got)
	}
}

func TestACallWithoutASessionEndsWhenItsCallerLosesAccess(t *testing.T) {
	r := start(t, nil)
	body, header := statelessRequest("tools/call", `"name":"demo__wait","arguments":{}`)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		r.say("POST", alice, body, append(header, "Mcp-Name: demo__wait")...)
	}()
	<-r.fakeNamespace.started
	r.endpoint.EndRevoked(t.Context(), "usr_bob")
	r.people.gone.Store(true)
	r.endpoint.EndRevoked(t.Context(), "usr_alice")
	select {
	case <-answered:
	case <-time.After(time.Minute):
		t.Error("the call goes on")
		close(r.fakeNamespace.release)
	}
}
