package access

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// vouching is a provider that can be asked again about its logins and that issues logout tokens, with the text
// "logout <subject> <session> <id>".
type vouching struct {
	*provider
	mu      sync.Mutex
	checked []string // the renewals that it was asked about
	answer  error
	subject string // "" for the subject that it was asked about
}

func newVouching() *vouching { return &vouching{provider: newProvider("https://idp", "alice", "bob")} }

func (v *vouching) CheckSession(_ context.Context, req auth.SessionCheck) (auth.Identity, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.checked = append(v.checked, req.Renewal.Reveal())
	if v.answer != nil {
		return auth.Identity{}, v.answer
	}
	subject := req.Subject
	if v.subject != "" {
		subject = v.subject
	}
	return auth.Identity{Issuer: v.issuer, Subject: subject, Renewal: req.Renewal + "+"}, nil
}

func (v *vouching) VerifyLogout(_ context.Context, token string) (auth.Logout, error) {
	fields := strings.Split(token, " ")
	if len(fields) != 4 || fields[0] != "logout" {
		return auth.Logout{}, fmt.Errorf("not a logout token: %w", plugins.ErrUnauthenticated)
	}
	return auth.Logout{Issuer: v.issuer, Subject: fields[1], SessionID: fields[2], TokenID: fields[3], ExpiresAt: time.Now().Add(time.Minute)}, nil
}

func (v *vouching) set(answer error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answer = answer
}

func (v *vouching) renewals() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return strings.Join(v.checked, " ")
}

// vouchedFor returns an Access that asks its provider again after the interval.
func vouchedFor(t *testing.T, v *vouching, interval time.Duration) (*Access, *counted) {
	t.Helper()
	state := openState(t)
	a := New(Options{
		Providers: []Provider{{Name: "idp", Adapter: v, Recheck: interval}}, Audiences: []string{"https://base"},
		Users: state, Cookies: state, Keys: state, Revocations: state,
	})
	return a, state
}

// loginOf returns the cookie of a subject's login in a session of the provider. The provider last confirmed the login
// that long ago (age).
func loginOf(t *testing.T, a *Access, state *counted, subject, session string, age time.Duration) string {
	t.Helper()
	id, err := a.MCP(t.Context(), "token-of-"+subject, "")
	if err != nil {
		t.Fatal(err)
	}
	id.Session = core.SessionHash(id.Issuer, session)
	token, err := a.newLogin(t.Context(), secret(), id, a.gate.Load().key.print(), plugins.Secret("renewal"))
	if err != nil {
		t.Fatal(err)
	}
	aged(t, state, token, age)
	return token
}

// aged sets how long ago a login was confirmed.
func aged(t *testing.T, state *counted, token string, age time.Duration) {
	t.Helper()
	c, err := state.Cookie(t.Context(), fingerprintOf(token).String())
	if err != nil {
		t.Fatal(err)
	}
	c.CheckedAt = time.Now().Add(-age)
	if err := state.CookieChecked(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func TestALoginIsCheckedWithItsProviderBeforeTheIntervalEnds(t *testing.T) {
	v := newVouching()
	a, state := vouchedFor(t, v, 5*time.Minute)
	cookie := loginOf(t, a, state, "alice", "s1", 3*time.Minute)
	want(t, "a login that was confirmed recently", outcome(a.API(t.Context(), "", cookie))+v.renewals(), "alice")
	aged(t, state, cookie, 4*time.Minute+time.Second)
	for range 3 {
		want(t, "a login that is due", outcome(a.API(t.Context(), "", cookie)), "alice")
	}
	want(t, "the renewals", v.renewals(), "renewal")
	want(t, "a login that nobody used for an hour", outcome(a.API(t.Context(), "", loginOf(t, a, state, "alice", "s1", time.Hour))), "alice")
}

func TestTheRenewalFromTheLastCheckReplacesTheOldOneAndIsEncryptedInTheDatabase(t *testing.T) {
	v := newVouching()
	a, state := vouchedFor(t, v, 5*time.Minute)
	cookie := loginOf(t, a, state, "alice", "s1", 5*time.Minute)
	want(t, "the login", outcome(a.API(t.Context(), "", cookie)), "alice")
	stored, err := state.Cookie(t.Context(), fingerprintOf(cookie).String())
	if err != nil || stored.Renewal == "" || strings.Contains(stored.Renewal, "renewal") {
		t.Errorf("%+v, %v", stored, err)
	}
	plain, err := openRenewal(cookie, stored.Renewal)
	want(t, "the renewal", plain.Reveal(), "renewal+")
	if _, other := openRenewal(cookie+"x", stored.Renewal); err != nil || other == nil {
		t.Errorf("%v; with another cookie: %v", err, other)
	}
}

func TestALoginThatItsProviderNoLongerConfirmsEndsEverywhere(t *testing.T) {
	for name, c := range map[string]struct {
		answer  error
		subject string
	}{
		"refused":         {answer: fmt.Errorf("the grant was revoked: %w", plugins.ErrUnauthenticated)},
		"another subject": {subject: "bob"},
	} {
		v := newVouching()
		a, state := vouchedFor(t, v, 5*time.Minute)
		cookie := loginOf(t, a, state, "alice", "s1", 5*time.Minute)
		v.answer, v.subject = c.answer, c.subject
		changed := make(chan string, 4)
		stop := a.WatchRevocations(func(user string) { changed <- user })
		want(t, name, outcome(a.API(t.Context(), "", cookie)), "unauthenticated")
		if user := <-changed; user == "" {
			t.Errorf("%s: the user's streams were not ended", name)
		}
		stop()
		if _, err := state.Cookie(t.Context(), fingerprintOf(cookie).String()); core.CodeOf(err) != core.CodeNotFound {
			t.Errorf("%s: the login still exists: %v", name, err)
		}
	}
}

func TestALoginStaysValidForAWhileIfItsProviderIsUnavailable(t *testing.T) {
	v := newVouching()
	v.set(plugins.ErrUnavailable)
	a, state := vouchedFor(t, v, 5*time.Minute)
	cookie := loginOf(t, a, state, "alice", "s1", 6*time.Minute)
	for range 3 {
		want(t, "six minutes after it was confirmed", outcome(a.API(t.Context(), "", cookie)), "alice")
	}
	want(t, "the checks", v.renewals(), "renewal") // one check, and then a pause
	aged(t, state, cookie, 16*time.Minute)
	want(t, "16 minutes after it was confirmed", outcome(a.API(t.Context(), "", cookie)), "unavailable")
}

func TestOnlyOneOfSeveralServersChecksALogin(t *testing.T) {
	v := newVouching()
	a, state := vouchedFor(t, v, 5*time.Minute)
	peer := New(Options{Providers: []Provider{{Name: "idp", Adapter: v, Recheck: 5 * time.Minute}}, Users: state, Cookies: state, Keys: state, Revocations: state})
	cookie := loginOf(t, a, state, "alice", "s1", 5*time.Minute)
	var asking sync.WaitGroup
	for i := range 20 {
		server := []*Access{a, peer}[i%2]
		asking.Go(func() { want(t, "the login", outcome(server.API(t.Context(), "", cookie)), "alice") })
	}
	asking.Wait()
	want(t, "the renewals", v.renewals(), "renewal")
}

func TestALogoutTokenEndsOnlyTheSessionsItRefersTo(t *testing.T) {
	for name, c := range map[string]struct {
		token string
		ends  string // some of: the login of s1, that of s2, one without a session, the bearer, and bob's login
	}{
		"a session of a subject": {"logout alice s1 j1", "s1 none bearer"},
		"a session":              {"logout  s1 j1", "s1"},
		"a subject":              {"logout alice  j1", "s1 s2 none bearer"},
		"an unknown session":     {"logout  s9 j1", ""},
	} {
		v := newVouching()
		a, state := vouchedFor(t, v, 5*time.Minute)
		logins := map[string]string{
			"s1": loginOf(t, a, state, "alice", "s1", 0), "s2": loginOf(t, a, state, "alice", "s2", 0),
			"none": loginOf(t, a, state, "alice", "", 0), "bob": loginOf(t, a, state, "bob", "s3", 0),
		}
		bearer := tokenCaller(t, a, "token-of-alice")
		if err := a.BackchannelLogout(t.Context(), c.token); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var ended []string
		for _, login := range []string{"s1", "s2", "none", "bob"} {
			if outcome(a.API(t.Context(), "", logins[login])) == "unauthenticated" {
				ended = append(ended, login)
			}
		}
		if currentCode(a.Current(t.Context(), bearer)) == "unauthenticated" {
			ended = append(ended, "bearer")
		}
		want(t, name, strings.Join(ended, " "), c.ends)
		if err := a.BackchannelLogout(t.Context(), c.token); core.CodeOf(err) != core.CodeBadRequest {
			t.Errorf("%s, replayed: %v", name, err)
		}
	}
}

func TestATokenIssuedBeforeALogoutIsNotAcceptedAgain(t *testing.T) {
	v := newVouching()
	a, _ := vouchedFor(t, v, 5*time.Minute)
	issued := func(at time.Time) auth.Identity {
		id := v.identity("alice")
		id.Claims = fmt.Appendf(nil, `{"iat": %d}`, at.Unix())
		return id
	}
	v.provider.set(func(p *provider) {
		p.tokens["token-of-alice"], p.tokens["a-new-token"] = issued(time.Now().Add(-time.Minute)), issued(time.Now().Add(2*time.Second))
	})
	want(t, "before", outcome(a.MCP(t.Context(), "token-of-alice", "")), "alice")
	if err := a.BackchannelLogout(t.Context(), "logout alice  j1"); err != nil {
		t.Fatal(err)
	}
	want(t, "a token from before", outcome(a.MCP(t.Context(), "token-of-alice", "")), "unauthenticated")
	<-time.After(2 * time.Millisecond) // times in the store are milliseconds
	want(t, "a token from after", outcome(a.MCP(t.Context(), "a-new-token", "")), "alice")
}

func TestAnInvalidLogoutTokenEndsNothing(t *testing.T) {
	v := newVouching()
	a, state := vouchedFor(t, v, 5*time.Minute)
	cookie := loginOf(t, a, state, "alice", "s1", 0)
	for _, token := range []string{"", "x", "logout alice", strings.Repeat("x", 20<<10)} {
		if err := a.BackchannelLogout(t.Context(), token); core.CodeOf(err) != core.CodeBadRequest {
			t.Errorf("%.20q: %v", token, err)
		}
	}
	want(t, "the login", outcome(a.API(t.Context(), "", cookie)), "alice")
	none, _ := newAccess(t, "", newProvider("https://idp", "alice"))
	if err := none.BackchannelLogout(t.Context(), "logout alice s1 j1"); core.CodeOf(err) != core.CodeNotConfigured {
		t.Errorf("an adapter without logout tokens: %v", err)
	}
}
