package relyingparty

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// userInfoEndpoint is a tokenEndpoint with a UserInfo endpoint, which fails with the status refuses unless that is 0.
type userInfoEndpoint struct {
	*tokenEndpoint
	refuses int
}

func (e *userInfoEndpoint) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Path == "/userinfo" && e.refuses != 0 {
		rec := httptest.NewRecorder()
		rec.WriteHeader(e.refuses)
		return rec.Result(), nil
	}
	return e.tokenEndpoint.RoundTrip(req)
}

// loggedIn logs in through a provider whose token endpoint also returns the members of answer.
func loggedIn(t *testing.T, answer map[string]any) (*userInfoEndpoint, *Party, auth.Identity) {
	t.Helper()
	e, party := exchanging(t, nil, func(*Options) {})
	e.pages["/.well-known/openid-configuration"].(map[string]any)["userinfo_endpoint"] = issuer + "/userinfo"
	e.pages["/userinfo"] = map[string]any{"sub": "alice"}
	for name, value := range answer {
		e.answer[name] = value
	}
	u := &userInfoEndpoint{tokenEndpoint: e}
	party.client.Transport = u
	id, err := exchange(t, party)
	if err != nil || id.Renewal == "" {
		t.Fatalf("%+v, %v", id, err)
	}
	return u, party, id
}

// outcome returns "good", "refused" or "down".
func outcome(t *testing.T, err error) string {
	t.Helper()
	switch {
	case err == nil:
		return "good"
	case errors.Is(err, plugins.ErrUnauthenticated):
		return "refused"
	case errors.Is(err, plugins.ErrUnavailable):
		return "down"
	}
	t.Errorf("another error: %v", err)
	return ""
}

func TestALoginIsCheckedWithItsRefreshToken(t *testing.T) {
	for name, c := range map[string]struct {
		change func(e *userInfoEndpoint)
		want   string
	}{
		"refreshed": {func(*userInfoEndpoint) {}, "good"},
		"the grant was revoked": {func(e *userInfoEndpoint) {
			e.status, e.answer = http.StatusBadRequest, map[string]any{"error": "invalid_grant"}
		}, "refused"},
		"the person has to log in": {func(e *userInfoEndpoint) {
			e.status, e.answer = http.StatusBadRequest, map[string]any{"error": "interaction_required"}
		}, "refused"},
		"the client is refused": {func(e *userInfoEndpoint) {
			e.status, e.answer = http.StatusUnauthorized, map[string]any{"error": "invalid_client"}
		}, "down"},
		"the provider fails":   {func(e *userInfoEndpoint) { e.status = http.StatusBadGateway }, "down"},
		"the provider is down": {func(e *userInfoEndpoint) { e.setDown(true) }, "good"}, // the keys are known, and the token endpoint still responds
		"another subject":      {func(e *userInfoEndpoint) { e.answer["id_token"] = e.idToken(map[string]any{"sub": "bob"}) }, "refused"},
		"another client":       {func(e *userInfoEndpoint) { e.answer["id_token"] = e.idToken(map[string]any{"aud": "other"}) }, "refused"},
		"issued to another":    {func(e *userInfoEndpoint) { e.answer["id_token"] = e.idToken(map[string]any{"azp": "other"}) }, "refused"},
		"no id token":          {func(e *userInfoEndpoint) { delete(e.answer, "id_token") }, "good"},
		"no id token, and bob": {func(e *userInfoEndpoint) {
			delete(e.answer, "id_token")
			e.pages["/userinfo"] = map[string]any{"sub": "bob"}
		}, "refused"},
		"no id token, refused":  {func(e *userInfoEndpoint) { delete(e.answer, "id_token"); e.refuses = 401 }, "refused"},
		"no id token, and down": {func(e *userInfoEndpoint) { delete(e.answer, "id_token"); e.refuses = 503 }, "good"}, // the refresh token has been accepted
	} {
		e, party, id := loggedIn(t, map[string]any{"refresh_token": "r1"})
		e.answer["refresh_token"] = "r2"
		e.answer["id_token"] = e.idToken(map[string]any{"sid": "s2"})
		c.change(e)
		got, err := party.CheckSession(t.Context(), auth.SessionCheck{Renewal: id.Renewal, Subject: "alice"})
		if o := outcome(t, err); o != c.want {
			t.Errorf("%s: %s (%v), want %s", name, o, err, c.want)
		}
		if err == nil && (got.Subject != "alice" || got.Issuer != issuer || got.Renewal == id.Renewal || got.Renewal == "") {
			t.Errorf("%s: %+v", name, got)
		}
		if name == "refreshed" && (got.SessionID != "s2" || e.form.Get("grant_type") != "refresh_token" || e.form.Get("refresh_token") != "r1") {
			t.Errorf("session %q, form %v", got.SessionID, e.form)
		}
	}
}

// The server adds the redirect URI to the requests of a login if the settings have none.
func TestALoginIsRefreshedWithoutARedirectURIInTheSettings(t *testing.T) {
	e, party, id := loggedIn(t, map[string]any{"refresh_token": "r1"})
	party.options.RedirectURI = ""
	e.answer["id_token"] = e.idToken()
	if _, err := party.CheckSession(t.Context(), auth.SessionCheck{Renewal: id.Renewal, Subject: "alice"}); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestALoginWithoutARefreshTokenIsCheckedAtTheUserInfoEndpoint(t *testing.T) {
	for name, c := range map[string]struct {
		change func(e *userInfoEndpoint)
		want   string
	}{
		"confirmed":            {func(*userInfoEndpoint) {}, "good"},
		"revoked":              {func(e *userInfoEndpoint) { e.refuses = 401 }, "refused"},
		"forbidden":            {func(e *userInfoEndpoint) { e.refuses = 403 }, "refused"},
		"the provider fails":   {func(e *userInfoEndpoint) { e.refuses = 500 }, "down"},
		"another subject":      {func(e *userInfoEndpoint) { e.pages["/userinfo"] = map[string]any{"sub": "bob"} }, "refused"},
		"no claims":            {func(e *userInfoEndpoint) { e.pages["/userinfo"] = []string{"alice"} }, "down"},
		"the provider is down": {func(e *userInfoEndpoint) { e.setDown(true) }, "down"},
	} {
		e, party, id := loggedIn(t, nil)
		c.change(e)
		got, err := party.CheckSession(t.Context(), auth.SessionCheck{Renewal: id.Renewal, Subject: "alice"})
		if o := outcome(t, err); o != c.want {
			t.Errorf("%s: %s (%v), want %s", name, o, err, c.want)
		}
		if err == nil && !got.ExpiresAt.IsZero() {
			t.Errorf("%s: a confirmed login should have no new information: %+v", name, got)
		}
	}
}

func TestALoginEndsWithTheAccessTokenThatConfirmsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, party, id := loggedIn(t, map[string]any{"expires_in": 600})
		for _, c := range []struct {
			after time.Duration
			want  string
		}{{9 * time.Minute, "good"}, {2 * time.Minute, "refused"}} {
			pass(c.after)
			_, err := party.CheckSession(t.Context(), auth.SessionCheck{Renewal: id.Renewal, Subject: "alice"})
			if o := outcome(t, err); o != c.want {
				t.Errorf("%s, want %s", o, c.want)
			}
		}
	})
}

func TestAKeyThatTheProviderDropsEndsItsLoginsAtTheNextCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, party, id := loggedIn(t, map[string]any{"refresh_token": "r1"})
		e.publish("first", "second") // during a rotation both keys are published
		e.answer["id_token"] = e.token("second", map[string]any{"aud": "client"})
		pass(5 * time.Minute)
		next, err := party.CheckSession(t.Context(), auth.SessionCheck{Renewal: id.Renewal, Subject: "alice"})
		if err != nil {
			t.Fatalf("a login during a rotation: %v", err)
		}
		e.publish("second")
		pass(5 * time.Minute)
		if _, err := party.CheckSession(t.Context(), auth.SessionCheck{Renewal: id.Renewal, Subject: "alice"}); outcome(t, err) != "refused" {
			t.Errorf("a login signed with the dropped key: %v", err)
		}
		if _, err := party.CheckSession(t.Context(), auth.SessionCheck{Renewal: next.Renewal, Subject: "alice"}); err != nil {
			t.Errorf("a login signed with the new key in the meantime: %v", err)
		}
	})
}

func TestATokenSignedWithADroppedKeyIsRefusedAfterFiveMinutesEvenIfUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t)
		party := p.party()
		token := p.token("first")
		if _, err := party.Verify(t.Context(), auth.VerifyRequest{Token: token}); err != nil {
			t.Fatal(err)
		}
		p.publish("second")
		pass(keysOld + time.Second)
		if _, err := party.Verify(t.Context(), auth.VerifyRequest{Token: token}); outcome(t, err) != "refused" {
			t.Errorf("a token signed with the dropped key: %v", err)
		}
		p.setDown(true)
		pass(keysOld + time.Second)
		if _, err := party.Verify(t.Context(), auth.VerifyRequest{Token: p.token("second")}); err != nil {
			t.Errorf("a token while the provider is down: %v", err)
		}
	})
}

func TestARenewalFromAnotherAdapterIsRefused(t *testing.T) {
	_, party, _ := loggedIn(t, nil)
	for _, renewal := range []plugins.Secret{"", "{}", "x", `{"key":"x","refresh":"r"}`} {
		if _, err := party.CheckSession(t.Context(), auth.SessionCheck{Renewal: renewal, Subject: "alice"}); outcome(t, err) != "refused" {
			t.Errorf("%q: %v", renewal.Reveal(), err)
		}
	}
}

func TestALoginWhoseTokensAreTooLongHasNoRenewal(t *testing.T) {
	short := renewal{Key: "k", Refresh: strings.Repeat("r", 32<<10-len(renewal{Key: "k", Refresh: "r"}.secret())+1)}
	if got := short.secret(); len(got) != 32<<10 {
		t.Errorf("a renewal of 32 KiB has %d bytes", len(got))
	}
	short.Refresh += "r"
	if got := short.secret(); got != "" {
		t.Errorf("a renewal of more than 32 KiB has %d bytes, want none", len(got))
	}
}

func TestWithoutAUserInfoEndpointARefreshedLoginNeedsNoIDToken(t *testing.T) {
	e, party := exchanging(t, nil, func(*Options) {})
	e.answer["refresh_token"] = "r1"
	id, err := exchange(t, party)
	if err != nil {
		t.Fatal(err)
	}
	delete(e.answer, "id_token")
	if _, err := party.CheckSession(t.Context(), auth.SessionCheck{Renewal: id.Renewal, Subject: "alice"}); err != nil {
		t.Error(err)
	}
}

func TestANewIDTokenWithoutASessionKeepsTheLoginsSession(t *testing.T) {
	e, party := exchanging(t, nil, func(*Options) {})
	e.answer["refresh_token"], e.answer["id_token"] = "r1", e.idToken(map[string]any{"sid": "s1"})
	id, err := exchange(t, party)
	if err != nil || id.SessionID != "s1" {
		t.Fatalf("%+v, %v", id, err)
	}
	e.answer["id_token"] = e.idToken(nil)
	again, err := party.CheckSession(t.Context(), auth.SessionCheck{Renewal: id.Renewal, Subject: "alice"})
	if err != nil || again.SessionID != "s1" {
		t.Errorf("%+v, %v", again, err)
	}
}
