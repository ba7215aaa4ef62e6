package access

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func TestAKeyIsExchangedForACookieThatEndsWithLogout(t *testing.T) {
	a, _ := newAccess(t, testKey, nil)
	for _, wrong := range []string{"", "wrong", testKey + " "} {
		if _, err := a.Login(t.Context(), wrong); core.CodeOf(err) != core.CodeUnauthenticated {
			t.Errorf("login with %q: %v", wrong, err)
		}
	}
	token, err := a.Login(t.Context(), testKey)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(token, testKey) || len(token) < 43 {
		t.Errorf("the token is not opaque or too short: %d characters", len(token))
	}
	want(t, "the cookie", outcome(a.API(t.Context(), "", token)), "owner")
	want(t, "a changed cookie", outcome(a.API(t.Context(), "", token+"x")), "unauthenticated")
	want(t, "a huge cookie", outcome(a.API(t.Context(), "", strings.Repeat("x", 1<<20))), "unauthenticated")
	want(t, "the cookie as a bearer for /mcp", outcome(a.MCP(t.Context(), token, "")), "unauthenticated")
	if err := a.Logout(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	want(t, "after logout", outcome(a.API(t.Context(), "", token)), "unauthenticated")
	if err := a.Logout(t.Context(), token); err != nil {
		t.Errorf("logging out twice: %v", err)
	}
}

func TestTheStoreContainsNoTokenAndNoKey(t *testing.T) {
	a, state := newAccess(t, testKey, nil)
	token, err := a.Login(t.Context(), testKey)
	if err != nil {
		t.Fatal(err)
	}
	c, err := state.Cookie(t.Context(), fingerprintOf(token).String())
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{token, testKey, fingerprintOf(testKey).String()} {
		if strings.Contains(c.Hash+c.KeyPrint, secret) {
			t.Errorf("the store contains %q", secret)
		}
	}
	if left := time.Until(c.ExpiresAt); left > cookieLife || left < cookieLife-time.Minute {
		t.Errorf("the login lasts %v", left)
	}
}

func TestChangingTheKeyEndsEveryCookie(t *testing.T) {
	p := newProvider("https://idp")
	a, state := newAccess(t, testKey, p)
	byKey, err := a.Login(t.Context(), testKey)
	if err != nil {
		t.Fatal(err)
	}
	byProvider := browserLogin(t, a, "alice")
	again := func(key core.Secret) *Access { // a restart with the same state
		return New(Options{APIKey: key, Providers: only(p), Users: state, Cookies: state})
	}
	want(t, "by key, after a start", outcome(again(testKey).API(t.Context(), "", byKey)), "owner")
	want(t, "by provider, after a start", outcome(again(testKey).API(t.Context(), "", byProvider)), "alice")
	for _, other := range []core.Secret{"another key entirely", ""} {
		want(t, "by key, after rotation", outcome(again(other).API(t.Context(), "", byKey)), "unauthenticated")
		want(t, "by provider, after rotation", outcome(again(other).API(t.Context(), "", byProvider)), "unauthenticated")
	}
}

func TestAKeyThatIsRestoredDoesNotRestoreLogins(t *testing.T) {
	a, state := newAccess(t, testKey, nil)
	token, err := a.Login(t.Context(), testKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, start := range []struct { // in sequence, with the same state
		key core.Secret
		who string
	}{{testKey, "owner"}, {"another key entirely", "unauthenticated"}, {testKey, "unauthenticated"}} {
		a = New(Options{APIKey: start.key, Users: state, Cookies: state})
		if err := a.EndOldLogins(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, "with "+start.key.Reveal(), outcome(a.API(t.Context(), "", token)), start.who)
	}
}

func TestADevModeLoginIsInvalidOutsideDevMode(t *testing.T) {
	dev, state := newAccess(t, "", nil)
	token, err := dev.Login(t.Context(), "whatever")
	if err != nil {
		t.Fatal(err)
	}
	p := newProvider("https://idp")
	for name, o := range map[string]Options{"a key": {APIKey: testKey}, "an adapter": {Providers: only(p)}, "both": {APIKey: testKey, Providers: only(p)}} {
		o.Users, o.Cookies = state, state
		want(t, name, outcome(New(o).API(t.Context(), "", token)), "unauthenticated")
	}
}

func TestACookieIsValidWhileItsProviderIsConfigured(t *testing.T) {
	p := newProvider("https://idp")
	a, state := newAccess(t, "", p)
	token := browserLogin(t, a, "alice")
	want(t, "before any change", outcome(a.API(t.Context(), "", token)), "alice")
	a.SetProviders(only(newProvider("https://idp")), nil)
	want(t, "another adapter for the same issuer", outcome(a.API(t.Context(), "", token)), "alice")
	a.SetProviders(only(newProvider("https://other")), nil)
	want(t, "another issuer", outcome(a.API(t.Context(), "", token)), "unauthenticated")

	down := newProvider("https://idp")
	down.down = true
	a.SetProviders(only(down), nil)
	want(t, "an adapter that cannot report its issuer", outcome(a.API(t.Context(), "", token)), "unavailable")
	a.SetProviders(only(p), nil)
	state.fail.Store(true)
	want(t, "a store that cannot be read", outcome(a.API(t.Context(), "", token)), "unavailable")
}

func TestABrowserLoginReturnsACookieAndThePathWhereItStarted(t *testing.T) {
	p := newProvider("https://idp")
	a, _ := newAccess(t, "", p)
	start, err := a.BeginLogin(t.Context(), LoginRequest{RedirectURI: "https://base/v1/auth/callback", ReturnTo: "/apps?x=1"})
	if err != nil {
		t.Fatal(err)
	}
	if s := p.starts[0]; start.URL != "https://idp/authorize?state="+s.State || s.RedirectURI != "https://base/v1/auth/callback" ||
		len(s.CodeChallenge) != 43 || s.Nonce == "" || s.State == s.Nonce {
		t.Errorf("the provider received %+v for %s", s, start.URL)
	}
	done, err := a.FinishLogin(t.Context(), LoginAnswer{State: stateOf(t, start), Code: "code-of-alice", Binding: start.Binding})
	token, returnTo := done.Token, done.ReturnTo
	if err != nil || returnTo != "/apps?x=1" {
		t.Fatalf("got %q, %v", returnTo, err)
	}
	want(t, "the cookie", outcome(a.API(t.Context(), "", token)), "alice")
	_, err = a.FinishLogin(t.Context(), LoginAnswer{State: stateOf(t, start), Code: "code-of-alice", Binding: start.Binding})
	want(t, "the same state again", string(core.CodeOf(err)), "unauthenticated")
}

func TestABrowserCannotFinishALoginThatAnotherBrowserStarted(t *testing.T) {
	cases := map[string]struct {
		spoil func(a *Access, p *provider, answer *LoginAnswer)
		want  core.Code
	}{
		"an unknown state":                       {func(_ *Access, _ *provider, l *LoginAnswer) { l.State = "made-up" }, core.CodeUnauthenticated},
		"no state":                               {func(_ *Access, _ *provider, l *LoginAnswer) { l.State = "" }, core.CodeUnauthenticated},
		"another browser":                        {func(_ *Access, _ *provider, l *LoginAnswer) { l.Binding = "other" }, core.CodeUnauthenticated},
		"no code":                                {func(_ *Access, _ *provider, l *LoginAnswer) { l.Code = "" }, core.CodeUnauthenticated},
		"a refused code":                         {func(_ *Access, _ *provider, l *LoginAnswer) { l.Code = "bad" }, core.CodeUnauthenticated},
		"a provider that was swapped in between": {func(a *Access, _ *provider, _ *LoginAnswer) { a.SetProviders(only(newProvider("https://idp")), nil) }, core.CodeUnauthenticated},
		"a provider that is down":                {func(_ *Access, p *provider, _ *LoginAnswer) { p.down = true }, core.CodeUnavailable},
		"an adapter that was removed":            {func(a *Access, _ *provider, _ *LoginAnswer) { a.SetProviders(only(nil), nil) }, core.CodeNotConfigured},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newProvider("https://idp")
			a, _ := newAccess(t, "", p)
			start, err := a.BeginLogin(t.Context(), LoginRequest{RedirectURI: "https://base/v1/auth/callback", ReturnTo: "/"})
			if err != nil {
				t.Fatal(err)
			}
			answer := LoginAnswer{State: stateOf(t, start), Code: "code-of-alice", Binding: start.Binding}
			c.spoil(a, p, &answer)
			done, err := a.FinishLogin(t.Context(), answer)
			token := done.Token
			if core.CodeOf(err) != c.want || token != "" {
				t.Errorf("got %q, %v, want %s", token, err, c.want)
			}
		})
	}
}

func TestABrowserLoginExpiresAfterTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{Providers: only(newProvider("https://idp")), Users: memory{}})
		start, err := a.BeginLogin(t.Context(), LoginRequest{RedirectURI: "https://base/v1/auth/callback", ReturnTo: "/"})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(pendingLife)
		_, err = a.FinishLogin(t.Context(), LoginAnswer{State: stateOf(t, start), Code: "code-of-alice", Binding: start.Binding})
		want(t, "ten minutes later", string(core.CodeOf(err)), "unauthenticated")
	})
}

func TestOnlyOneOfTwoResponsesWithTheSameStateIsAccepted(t *testing.T) {
	a, _ := newAccess(t, "", newProvider("https://idp"))
	start, err := a.BeginLogin(t.Context(), LoginRequest{RedirectURI: "https://base/v1/auth/callback", ReturnTo: "/"})
	if err != nil {
		t.Fatal(err)
	}
	results := make([]error, 8)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			_, results[i] = a.FinishLogin(t.Context(), LoginAnswer{State: stateOf(t, start), Code: "code-of-alice", Binding: start.Binding})
		})
	}
	wg.Wait()
	accepted := 0
	for _, err := range results {
		if err == nil {
			accepted++
		}
	}
	if accepted != 1 {
		t.Errorf("%d responses were accepted, want 1", accepted)
	}
}

func TestLoginNeedsAnAdapterThatSupportsIt(t *testing.T) {
	cannot := newProvider("https://idp")
	cannot.login = false
	a, _ := newAccess(t, testKey, nil)
	b, _ := newAccess(t, "", cannot)
	for _, x := range []*Access{a, b} {
		if x.OffersBrowserLogin(t.Context()) {
			t.Error("a login that cannot be started should not be offered")
		}
		_, err := x.BeginLogin(t.Context(), LoginRequest{RedirectURI: "https://base/v1/auth/callback", ReturnTo: "/"})
		want(t, "begin", string(core.CodeOf(err)), "not_configured")
		_, err = x.FinishLogin(t.Context(), LoginAnswer{State: "s", Code: "c"})
		want(t, "finish", string(core.CodeOf(err)), "not_configured")
	}
	down := newProvider("https://idp")
	down.down = true
	for _, p := range []*provider{newProvider("https://idp"), down} {
		if c, _ := newAccess(t, "", p); !c.OffersBrowserLogin(t.Context()) {
			t.Error("a login that a provider supports should be offered")
		}
	}
}

func browserLogin(t *testing.T, a *Access, subject string) string {
	t.Helper()
	start, err := a.BeginLogin(t.Context(), LoginRequest{RedirectURI: "https://base/v1/auth/callback", ReturnTo: "/"})
	if err != nil {
		t.Fatal(err)
	}
	done, err := a.FinishLogin(t.Context(), LoginAnswer{State: stateOf(t, start), Code: "code-of-" + subject, Binding: start.Binding})
	token := done.Token
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func stateOf(t *testing.T, start LoginStart) string {
	t.Helper()
	u, err := url.Parse(start.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("state")
}

// sharedLogins stores pending logins in memory, in place of a store that several servers share.
type sharedLogins struct {
	mu   sync.Mutex
	rows map[string]json.RawMessage
	down bool
}

func (s *sharedLogins) PutLogin(_ context.Context, state, _ string, login json.RawMessage, _ time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return errors.New("down")
	}
	s.rows[state] = login
	return nil
}

func (s *sharedLogins) TakeLogin(_ context.Context, state string) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	login, ok := s.rows[state]
	delete(s.rows, state)
	switch {
	case s.down:
		return nil, errors.New("down")
	case !ok:
		return nil, core.Errorf(core.CodeNotFound, "none")
	}
	return login, nil
}

func TestABrowserMayReturnToAnotherServer(t *testing.T) {
	logins := &sharedLogins{rows: map[string]json.RawMessage{}}
	idp := newProvider("https://idp")
	_, state := newAccess(t, "", idp)
	server := func(p *provider) *Access {
		return New(Options{Providers: only(p), Users: state, Cookies: state, Logins: logins})
	}
	a, b, other := server(idp), server(idp), server(newProvider("https://other"))
	begin := func() LoginAnswer {
		t.Helper()
		start, err := a.BeginLogin(t.Context(), LoginRequest{RedirectURI: "https://base/v1/auth/callback", ReturnTo: "/apps"})
		if err != nil {
			t.Fatal(err)
		}
		return LoginAnswer{State: stateOf(t, start), Code: "code-of-alice", Binding: start.Binding}
	}
	answer := begin()
	for held := range logins.rows {
		if strings.Contains(held, answer.State) {
			t.Error("the state itself is stored")
		}
	}
	done, err := b.FinishLogin(t.Context(), answer)
	token, returnTo := done.Token, done.ReturnTo
	if err != nil || returnTo != "/apps" {
		t.Fatalf("got %q, %v", returnTo, err)
	}
	want(t, "the cookie on the server where the login started", outcome(a.API(t.Context(), "", token)), "alice")
	for name, on := range map[string]*Access{"a": a, "b": b} {
		_, err := on.FinishLogin(t.Context(), answer)
		want(t, "the same state again on "+name, string(core.CodeOf(err)), "unauthenticated")
	}
	stolen := begin()
	stolen.Binding = "of another browser"
	_, err = b.FinishLogin(t.Context(), stolen)
	want(t, "another browser", string(core.CodeOf(err)), "unauthenticated")
	_, err = other.FinishLogin(t.Context(), begin())
	want(t, "a server with another provider", string(core.CodeOf(err)), "unauthenticated")
	last := begin()
	logins.down = true
	_, err = b.FinishLogin(t.Context(), last)
	want(t, "a store that is down", string(core.CodeOf(err)), "unavailable")
	_, err = a.BeginLogin(t.Context(), LoginRequest{RedirectURI: "https://base/v1/auth/callback", ReturnTo: "/"})
	want(t, "a login that cannot be stored", string(core.CodeOf(err)), "unavailable")
}

func TestNoStepOfALoginPassesForAnotherOrUsesItUp(t *testing.T) {
	for name, shared := range map[string]Logins{"in memory": nil, "shared": &sharedLogins{rows: map[string]json.RawMessage{}}} {
		_, state := newAccess(t, "", newProvider("https://idp"))
		a := New(Options{Providers: only(newProvider("https://idp")), Users: state, Cookies: state, Logins: shared})
		d, err := a.AskForLogin(t.Context(), Device{Name: "laptop"})
		if err != nil {
			t.Fatal(err)
		}
		start, err := a.BeginLogin(t.Context(), LoginRequest{RedirectURI: "https://base/v1/auth/callback", ReturnTo: "/", Device: d.Code})
		if err != nil {
			t.Fatal(err)
		}
		answer := LoginAnswer{State: stateOf(t, start), Code: "code-of-alice", Binding: start.Binding}
		for _, text := range []string{answer.State, deviceKey(d.Code)} {
			_, _, err := a.AnswerDevice(t.Context(), text, true)
			want(t, name+": consent "+text, string(core.CodeOf(err)), "unauthenticated")
		}
		_, err = a.FinishLogin(t.Context(), LoginAnswer{State: deviceKey(d.Code), Code: "code-of-alice", Binding: start.Binding})
		want(t, name+": a device as the state", string(core.CodeOf(err)), "unauthenticated")
		done, err := a.FinishLogin(t.Context(), answer)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, err = a.FinishLogin(t.Context(), LoginAnswer{State: consentKey(done.Consent), Code: "code-of-alice", Binding: start.Binding})
		want(t, name+": a consent as the state", string(core.CodeOf(err)), "unauthenticated")
		if _, _, err := a.AnswerDevice(t.Context(), done.Consent, true); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want(t, name+": the device", outcome(a.API(t.Context(), "", d.Token)), "alice")
	}
}

// deviceLogin starts a login that a device asked for. It returns the consent that the login needs, and the device.
func deviceLogin(t *testing.T, a *Access, subject string) (consent string, d Device) {
	t.Helper()
	d, err := a.AskForLogin(t.Context(), Device{Name: "laptop"})
	if err != nil {
		t.Fatal(err)
	}
	start, err := a.BeginLogin(t.Context(), LoginRequest{RedirectURI: "https://base/v1/auth/callback", ReturnTo: "/", Device: d.Code})
	if err != nil {
		t.Fatal(err)
	}
	done, err := a.FinishLogin(t.Context(), LoginAnswer{State: stateOf(t, start), Code: "code-of-" + subject, Binding: start.Binding})
	if err != nil {
		t.Fatal(err)
	}
	return done.Consent, d
}

func TestADeviceCanLogInWithAProviderThatReturnsNoRenewal(t *testing.T) {
	a, _ := newAccess(t, "", newProvider("https://idp"))
	consent, d := deviceLogin(t, a, "alice")
	want(t, "before the consent", outcome(a.API(t.Context(), "", d.Token)), "unauthenticated")
	if _, _, err := a.AnswerDevice(t.Context(), consent, true); err != nil {
		t.Fatal(err)
	}
	want(t, "the device", outcome(a.API(t.Context(), "", d.Token)), "alice")
}

// late runs revoke after the provider's response, before the login is stored.
type late struct {
	*counted
	revoke func()
}

func (l *late) PutCookie(ctx context.Context, c core.Cookie) error {
	l.revoke()
	return l.counted.PutCookie(ctx, c)
}

func TestALoginThatIsCompletedAfterARevocationIsRefused(t *testing.T) {
	for name, login := range map[string]func(t *testing.T, a *Access, meanwhile func()) (token string, err error){
		"a browser": func(t *testing.T, a *Access, _ func()) (string, error) {
			start, err := a.BeginLogin(t.Context(), LoginRequest{RedirectURI: "https://base/v1/auth/callback", ReturnTo: "/"})
			if err != nil {
				t.Fatal(err)
			}
			done, err := a.FinishLogin(t.Context(), LoginAnswer{State: stateOf(t, start), Code: "code-of-alice", Binding: start.Binding})
			return done.Token, err
		},
		"a device": func(t *testing.T, a *Access, meanwhile func()) (string, error) {
			consent, d := deviceLogin(t, a, "alice")
			meanwhile()
			_, _, err := a.AnswerDevice(t.Context(), consent, true)
			return d.Token, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider("https://idp")
			state := openState(t)
			slow := &late{counted: state}
			a := New(Options{Providers: only(p), Users: state, Cookies: slow, Keys: state, Revocations: state})
			revoke := func() {
				if err := a.Revoke(t.Context(), core.Revocation{Issuer: "https://idp", Subject: "alice"}); err != nil {
					t.Error(err)
				}
			}
			slow.revoke = func() {}
			if name == "a browser" {
				slow.revoke = revoke
			}
			token, err := login(t, a, revoke)
			want(t, "the login", string(core.CodeOf(err)), "unauthenticated")
			want(t, "its token", outcome(a.API(t.Context(), "", token)), "unauthenticated")
			<-time.After(2 * time.Millisecond) // times in the store have millisecond precision
			slow.revoke = func() {}
			want(t, "a login from after the revocation", outcome(a.API(t.Context(), "", browserLogin(t, a, "alice"))), "alice")
		})
	}
}
