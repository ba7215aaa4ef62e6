package relyingparty

import (
	"encoding/base64"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/plugins/auth"
)

func TestLogoutTokens(t *testing.T) {
	p := newProvider(t)
	party := p.party(func(o *Options) { o.ClientID = "client" })
	now := time.Now()
	claims := func(changes map[string]any) map[string]any {
		all := map[string]any{
			"aud": "client", "iat": now.Unix(), "exp": now.Add(2 * time.Minute).Unix(), "jti": "j1", "sid": "s1",
			"events": map[string]any{logoutEvent: map[string]any{}},
		}
		maps.Copy(all, changes)
		return all
	}
	good := p.token("first", claims(nil))
	l, err := party.VerifyLogout(t.Context(), good)
	if err != nil || l.Issuer != issuer || l.Subject != "alice" || l.SessionID != "s1" || l.TokenID != "j1" || l.ExpiresAt.Before(now.Add(2*time.Minute)) {
		t.Fatalf("%+v, %v", l, err)
	}
	for name, changes := range map[string]map[string]any{
		"session alone": {"sub": nil}, "subject alone": {"sid": nil}, "several audiences": {"aud": []string{"other", "client"}},
		"the longest jti": {"jti": strings.Repeat("j", 1024)}, "the longest names": {"sub": strings.Repeat("s", 255), "sid": strings.Repeat("s", 255)},
		"one more event": {"events": map[string]any{logoutEvent: map[string]any{}, "urn:more": 1}},
	} {
		if _, err := party.VerifyLogout(t.Context(), p.token("first", claims(changes))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, changes := range map[string]map[string]any{
		"another issuer": {"iss": "https://evil.example"}, "another audience": {"aud": "other"}, "no audience": {"aud": nil},
		"no iat": {"iat": nil}, "issued in the future": {"iat": now.Add(time.Hour).Unix()}, "an iat as text": {"iat": "now"},
		"no exp": {"exp": nil}, "expired": {"iat": now.Add(-time.Hour).Unix(), "exp": now.Add(-time.Minute).Unix()},
		"good for years": {"exp": now.Add(9000 * time.Hour).Unix()},
		"no jti":         {"jti": nil}, "an empty jti": {"jti": ""}, "a jti that is a number": {"jti": 7}, "a long jti": {"jti": strings.Repeat("j", 1025)},
		"a long sub": {"sub": strings.Repeat("s", 256)}, "a long sid": {"sid": strings.Repeat("s", 256)},
		"a nonce": {"nonce": "n"}, "an empty nonce": {"nonce": ""}, "a nonce that is a number": {"nonce": 1},
		"no events": {"events": nil}, "other events": {"events": map[string]any{"urn:other": map[string]any{}}},
		"an event as text": {"events": map[string]any{logoutEvent: "yes"}}, "an event that is null": {"events": map[string]any{logoutEvent: nil}},
		"events as a list": {"events": []string{logoutEvent}},
		"neither":          {"sub": nil, "sid": nil}, "an empty sid": {"sid": ""}, "a sub that is a number": {"sub": 1},
	} {
		if _, err := party.VerifyLogout(t.Context(), p.token("first", claims(changes))); outcome(t, err) != "refused" {
			t.Errorf("%s: %v", name, err)
		}
	}
	parts := strings.Split(good, ".")
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + "."
	other := newProvider(t)
	for name, token := range map[string]string{
		"empty": "", "not signed": unsigned, "another payload": parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{}`)) + "." + parts[2],
		"another key": other.token("first", claims(nil)), "an id token": p.token("first", map[string]any{"aud": "client", "nonce": "n"}),
	} {
		if _, err := party.VerifyLogout(t.Context(), token); outcome(t, err) != "refused" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := party.Verify(t.Context(), auth.VerifyRequest{Token: p.typed(t, "logout+jwt", claims(nil))}); outcome(t, err) != "refused" {
		t.Errorf("a logout token as a bearer: %v", err)
	}
	for typ, token := range map[string]string{"none": good, "JWT": p.typed(t, "JWT", claims(nil)), "at+jwt": p.typed(t, "at+jwt", claims(nil))} { // the type is only recommended (section 2.4)
		if _, err := party.Verify(t.Context(), auth.VerifyRequest{Token: token}); outcome(t, err) != "refused" {
			t.Errorf("a logout token of the type %s as a bearer: %v", typ, err)
		}
	}
	if _, err := party.VerifyLogout(t.Context(), p.typed(t, "logout+jwt", claims(nil))); err != nil {
		t.Errorf("a logout token with its type: %v", err)
	}
	if _, err := party.VerifyLogout(t.Context(), p.typed(t, "at+jwt", claims(nil))); outcome(t, err) != "refused" {
		t.Errorf("an access token: %v", err)
	}
}
