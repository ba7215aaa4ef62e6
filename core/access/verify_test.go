package access

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

func TestUnknownVerdictsAreUnavailableAndNeverAccepted(t *testing.T) {
	cases := map[string]func(p *provider, s *counted){
		"the adapter is down":          func(p *provider, _ *counted) { p.down = true },
		"the adapter panics":           func(p *provider, _ *counted) { p.panics = true },
		"the user cannot be looked up": func(_ *provider, s *counted) { s.fail.Store(true) },
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			p := newProvider("https://idp", "alice")
			a, state := newAccess(t, "", p)
			p.set(func(p *provider) { spoil(p, state) })
			for _, token := range []string{"token-of-alice", "wrong"} {
				if name == "the user cannot be looked up" && token == "wrong" {
					continue
				}
				_, err := a.MCP(t.Context(), token, "")
				want(t, token, string(core.CodeOf(err)), "unavailable")
				if strings.Contains(err.Error(), token) {
					t.Error("the error contains the token")
				}
			}
			p.set(func(p *provider) { p.down, p.panics = false, false })
			state.fail.Store(false)
			want(t, "as soon as it can be verified again", outcome(a.MCP(t.Context(), "token-of-alice", "")), "alice")
		})
	}
}

func TestAnAdapterCannotVouchForNonsense(t *testing.T) {
	cases := map[string]func(id *auth.Identity){
		"the server's own issuer":          func(id *auth.Identity) { id.Issuer, id.Subject = core.IssuerLocal, "owner" },
		"no issuer":                        func(id *auth.Identity) { id.Issuer = "" },
		"no subject":                       func(id *auth.Identity) { id.Subject = "" },
		"a token that never expires":       func(id *auth.Identity) { id.ExpiresAt = time.Time{} },
		"a token that has already expired": func(id *auth.Identity) { id.ExpiresAt = time.Now().Add(-time.Second) },
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			p := newProvider("https://idp", "alice")
			id := p.tokens["token-of-alice"]
			spoil(&id)
			p.tokens["token-of-alice"] = id
			a, _ := newAccess(t, "", p)
			want(t, "/mcp", outcome(a.MCP(t.Context(), "token-of-alice", "")), "unauthenticated")
			want(t, "/v1", outcome(a.API(t.Context(), "token-of-alice", "")), "unauthenticated")
		})
	}
}

func TestMalformedTokensAreRefusedWithoutARequestToTheProvider(t *testing.T) {
	p := newProvider("https://idp")
	a, _ := newAccess(t, "", p)
	for _, bearer := range []string{"two words", "new\nline", "nul\x00", "ümlaut", strings.Repeat("x", maxToken+1)} {
		want(t, fmt.Sprintf("%.10q", bearer), outcome(a.MCP(t.Context(), bearer, "")), "unauthenticated")
	}
	if n := p.calls.Load(); n != 0 {
		t.Errorf("the adapter got %d requests", n)
	}
}

func TestUnknownRolesAreTreatedAsMember(t *testing.T) {
	p := newProvider("https://idp")
	a, _ := newAccess(t, "", p)
	for role, want := range map[string]core.Role{"owner": "owner", "admin": "admin", "member": "member", "": "member", "root": "member"} {
		id := p.identity("x" + role)
		id.OrgRole = role
		p.set(func(p *provider) { p.tokens["t-"+role] = id })
		got, err := a.MCP(t.Context(), "t-"+role, "")
		if err != nil || got.User.OrgRole != want {
			t.Errorf("role %q: got %q, %v, want %q", role, got.User.OrgRole, err, want)
		}
	}
}

// A provider may return any text as an email. Only plain text is stored.
func TestAnEmailThatIsNotPlainTextIsIgnored(t *testing.T) {
	p := newProvider("https://idp")
	a, _ := newAccess(t, "", p)
	for email, want := range map[string]string{"a@example.com": "a@example.com", "b@example.com\x00": "", "\u202ec@example.com": "", "d@exam\nple.com": ""} {
		id := p.identity("of " + core.PlainText(email))
		id.Email, id.DisplayName, id.Groups = email, email, []string{email}
		p.set(func(p *provider) { p.tokens["t"] = id })
		a.ForgetVerdicts()
		got, err := a.MCP(t.Context(), "t", "")
		if err != nil || got.User.Email != want {
			t.Errorf("%q: got %q, %v", email, got.User.Email, err)
		}
	}
}

func TestASubjectThatIsNotPlainTextIsRefused(t *testing.T) {
	p := newProvider("https://idp")
	a, _ := newAccess(t, "", p)
	for _, subject := range []string{"a\x00", "a\n", "\u202ea"} {
		p.set(func(p *provider) { p.tokens["t"] = p.identity(subject) })
		a.ForgetVerdicts()
		want(t, fmt.Sprintf("%q", subject), outcome(a.MCP(t.Context(), "t", "")), "unauthenticated")
	}
}

// memory is an in-memory Users. A database has its own goroutines, which a synctest bubble would wait for.
type memory struct{}

func (memory) WatchMembers(func(string)) {}

func (memory) Provision(_ context.Context, id core.Identity, _ []string) (core.User, error) {
	id.User.ID = "usr_" + id.Subject
	return id.User, nil
}

func (memory) Workspaces(context.Context, core.User) ([]core.Workspace, error) { return nil, nil }

func (memory) User(_ context.Context, id string) (core.User, error) { return core.User{ID: id}, nil }

var _ Cookies = (*store.Store)(nil)

func TestATokenIsIntrospectedOnceAMinuteUntilItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider("https://idp", "alice")
		short := p.identity("bob")
		short.ExpiresAt = time.Now().Add(20 * time.Second)
		p.tokens["short"] = short
		a := New(Options{Providers: only(p), Users: memory{}})
		steps := []struct {
			after  time.Duration
			token  string
			answer string
			calls  int64 // calls so far
		}{
			{0, "token-of-alice", "alice", 1},
			{59 * time.Second, "token-of-alice", "alice", 1},
			{time.Second, "token-of-alice", "alice", 2},
		}
		for _, s := range steps {
			<-time.After(s.after)
			want(t, s.token, outcome(a.MCP(t.Context(), s.token, "")), s.answer)
			if n := p.calls.Load(); n != s.calls {
				t.Errorf("after %v: called the adapter %d times, want %d", s.after, n, s.calls)
			}
		}
		short.ExpiresAt = time.Now().Add(20 * time.Second)
		p.set(func(p *provider) { p.tokens["short"] = short })
		want(t, "short", outcome(a.MCP(t.Context(), "short", "")), "bob")
		<-time.After(20 * time.Second)
		want(t, "a token that expired while it was cached", outcome(a.MCP(t.Context(), "short", "")), "unauthenticated")
	})
}

func TestARefusalIsCachedBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider("https://idp")
		a := New(Options{Providers: only(p), Users: memory{}})
		for range 3 {
			want(t, "not known yet", outcome(a.MCP(t.Context(), "late", "")), "unauthenticated")
		}
		if n := p.calls.Load(); n != 1 {
			t.Errorf("called the adapter %d times, want once", n)
		}
		p.set(func(p *provider) { p.tokens["late"] = p.identity("late") })
		<-time.After(refusedLife)
		want(t, "known by now", outcome(a.MCP(t.Context(), "late", "")), "late")
	})
}

func TestConcurrentRequestsWithOneTokenCallTheAdapterOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider("https://idp", "alice")
		p.block = make(chan struct{})
		a := New(Options{Providers: only(p), Users: memory{}})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { want(t, "a waiting request", outcome(a.MCP(t.Context(), "token-of-alice", "")), "alice") })
		}
		synctest.Wait()
		close(p.block)
		wg.Wait()
		if n := p.calls.Load(); n != 1 {
			t.Errorf("called the adapter %d times", n)
		}
	})
}

func TestACallerThatDisconnectsDoesNotCancelTheVerificationForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider("https://idp", "alice")
		p.block = make(chan struct{})
		a := New(Options{Providers: only(p), Users: memory{}})
		leaving, leave := context.WithCancel(t.Context())
		first, second := make(chan string, 1), make(chan string, 1)
		go func() { first <- outcome(a.MCP(leaving, "token-of-alice", "")) }()
		synctest.Wait()
		go func() { second <- outcome(a.MCP(t.Context(), "token-of-alice", "")) }()
		synctest.Wait()
		leave()
		want(t, "the cancelled request", <-first, "unavailable")
		close(p.block)
		want(t, "the other request", <-second, "alice")
	})
}

func TestTheServerDoesNotWaitForeverForAHungAdapter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider("https://idp", "alice")
		p.block = make(chan struct{})
		a := New(Options{Providers: only(p), Users: memory{}})
		began := time.Now()
		want(t, "hung", outcome(a.MCP(t.Context(), "token-of-alice", "")), "unavailable")
		if took := time.Since(began); took != askTimeout {
			t.Errorf("took %v", took)
		}
	})
}

func TestAFloodOfInvalidTokensIsBoundedAndEvictsNoValidOnes(t *testing.T) {
	p := newProvider("https://idp", "alice")
	a := New(Options{Providers: only(p), Users: memory{}})
	want(t, "before", outcome(a.MCP(t.Context(), "token-of-alice", "")), "alice")
	for i := range maxRefused + 100 {
		_, _ = a.MCP(t.Context(), fmt.Sprintf("bad-%d", i), "")
	}
	g := a.gate.Load()
	if n := g.refused.Len(); n > maxRefused {
		t.Errorf("%d refusals are cached", n)
	}
	calls := p.calls.Load()
	want(t, "after", outcome(a.MCP(t.Context(), "token-of-alice", "")), "alice")
	if p.calls.Load() != calls {
		t.Error("the valid token was evicted")
	}
}

func TestATokenForAWorkspacesAddressIsAcceptedOnlyThere(t *testing.T) {
	g := &trusted{audiences: []string{"https://a.example", "https://a.example/mcp", "client"}}
	if got := g.audiencesOf(""); len(got) != 3 {
		t.Errorf("/mcp accepts %q", got)
	}
	want := "https://a.example/mcp/ws_one"
	if got := g.audiencesOf("ws_one"); len(got) != 4 || got[3] != want {
		t.Errorf("/mcp/ws_one accepts %q, want %s as well", got, want)
	}
	if got := (&trusted{}).audiencesOf("ws_one"); len(got) != 0 {
		t.Errorf("with audience: any, %q are requested", got)
	}
}
