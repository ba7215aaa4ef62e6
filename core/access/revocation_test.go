package access

import (
	"runtime"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// revoke makes the provider reject a subject's token.
func (p *provider) revoke(subject string) {
	p.set(func(p *provider) { delete(p.tokens, "token-of-"+subject) })
}

// tokenCaller authenticates a token for /mcp.
func tokenCaller(t *testing.T, a *Access, token string) core.Caller {
	t.Helper()
	id, err := a.MCP(t.Context(), token, "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.Caller(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestARevokedSubjectLosesVerdictsLoginsAndSessionsOnEveryServer(t *testing.T) {
	p := newProvider("https://idp", "alice", "bob")
	a, state := newAccess(t, "", p)
	peer := New(Options{Providers: only(p), Audiences: []string{"https://base"}, Users: state, Cookies: state, Keys: state, Revocations: state})
	alice, bob := tokenCaller(t, a, "token-of-alice"), tokenCaller(t, a, "token-of-bob")
	elsewhere := tokenCaller(t, peer, "token-of-alice")
	cookie, err := a.newLogin(t.Context(), secret(), alice.Identity, a.gate.Load().key.print(), "")
	if err != nil {
		t.Fatal(err)
	}
	want(t, "a login", outcome(a.API(t.Context(), "", cookie)), "alice")
	changed := make(chan string, 4)
	defer a.WatchRevocations(func(user string) { changed <- user })()

	p.revoke("alice")
	asked := p.calls.Load()
	if err := a.Revoke(t.Context(), core.Revocation{Issuer: "https://idp", Subject: "alice"}); err != nil {
		t.Fatal(err)
	}
	peer.MembersChanged(alice.User.ID) // what the peer server does when it receives this server's notice
	want(t, "the change", <-changed, alice.User.ID)
	want(t, "the login", outcome(a.API(t.Context(), "", cookie)), "unauthenticated")
	want(t, "the session", currentCode(a.Current(t.Context(), alice)), "unauthenticated")
	want(t, "the session on another server", currentCode(peer.Current(t.Context(), elsewhere)), "unauthenticated")
	want(t, "the token", outcome(a.MCP(t.Context(), "token-of-alice", "")), "unauthenticated")
	want(t, "the token on another server", outcome(peer.MCP(t.Context(), "token-of-alice", "")), "unauthenticated")
	asked = p.calls.Load() - asked
	want(t, "the token of another subject", outcome(a.MCP(t.Context(), "token-of-bob", "")), "bob")
	if _, err := a.Current(t.Context(), bob); err != nil || asked != 2 || p.calls.Load() != 5 {
		t.Errorf("another subject: %v, %d calls to the provider", err, p.calls.Load())
	}

	<-time.After(2 * time.Millisecond) // times in the store are milliseconds
	p.set(func(p *provider) { p.tokens["a-new-token"] = p.identity("alice") })
	if _, err := a.Current(t.Context(), tokenCaller(t, a, "a-new-token")); err != nil {
		t.Errorf("a session with a token from after the revocation: %v", err)
	}
}

func TestARevokedTokenEndsOnlyWhatItStarted(t *testing.T) {
	p := newProvider("https://idp", "alice")
	p.tokens["another-token"] = p.identity("alice")
	a, _ := newAccess(t, "", p)
	revoked, other := tokenCaller(t, a, "token-of-alice"), tokenCaller(t, a, "another-token")
	p.revoke("alice")
	if err := a.Revoke(t.Context(), core.Revocation{Issuer: "https://idp", Token: fingerprintOf("token-of-alice").String()}); err != nil {
		t.Fatal(err)
	}
	want(t, "the session", currentCode(a.Current(t.Context(), revoked)), "unauthenticated")
	want(t, "the token", outcome(a.MCP(t.Context(), "token-of-alice", "")), "unauthenticated")
	want(t, "another token of the subject", outcome(a.MCP(t.Context(), "another-token", "")), "alice")
	if _, err := a.Current(t.Context(), other); err != nil || p.calls.Load() != 3 {
		t.Errorf("a session with another token: %v, %d calls to the provider", err, p.calls.Load())
	}
}

func TestAVerificationDuringWhichItsSubjectIsRevokedIsRefused(t *testing.T) {
	for _, known := range []bool{true, false} {
		p := newProvider("https://idp", "alice")
		a, _ := newAccess(t, "", p)
		if known {
			tokenCaller(t, a, "token-of-alice")
		}
		p.set(func(p *provider) {
			p.block = make(chan struct{})
			p.tokens["second-token"] = p.identity("alice")
		})
		before, answer := p.calls.Load(), make(chan string, 1)
		go func() { answer <- outcome(a.MCP(t.Context(), "second-token", "")) }()
		for p.calls.Load() == before {
			runtime.Gosched()
		}
		if err := a.Revoke(t.Context(), core.Revocation{Issuer: "https://idp", Subject: "alice"}); err != nil {
			t.Fatal(err)
		}
		close(p.block) // the provider answers as it did before the revocation
		want(t, "the token", <-answer, "unauthenticated")
	}
}

func TestAVerdictIsDroppedEvenIfTheRevocationCannotBeRecorded(t *testing.T) {
	p := newProvider("https://idp", "alice")
	a, state := newAccess(t, "", p)
	tokenCaller(t, a, "token-of-alice")
	p.revoke("alice")
	_ = state.Close()
	if err := a.Revoke(t.Context(), core.Revocation{Issuer: "https://idp", Subject: "alice"}); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("got %v", err)
	}
	want(t, "the token", outcome(a.MCP(t.Context(), "token-of-alice", "")), "unauthenticated")
}

// currentCode returns the code of an error from Current, or "".
func currentCode(_ core.Caller, err error) string { return string(core.CodeOf(err)) }
