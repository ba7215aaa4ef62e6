package login

import (
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// boss is the email address of an organization admin. In these tests, other people claim it as their own.
const boss = "boss@example.com"

// roleOf returns a caller's organization role and email, as the server knows them.
func roleOf(t *testing.T, s *harness.Server, credentials string) (role, email string) {
	t.Helper()
	a := s.Do(t, "GET", "/v1/auth/session", nil, credentials)
	user, _ := a.Object(t)["user"].(map[string]any)
	if a.Status != 200 || user == nil {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return user["orgRole"].(string), user["email"].(string)
}

// serveProvider starts a server that trusts the provider. settings are added to the auth section.
func serveProvider(t *testing.T, p *harness.Provider, settings ...string) *harness.Server {
	t.Helper()
	return harness.Serve(t, harness.Config(harness.OIDCAuth(p.Issuer, append([]string{"clientId: app"}, settings...)...)))
}

func TestOnlyAVerifiedEmailMakesAnAdmin(t *testing.T) {
	t.Parallel()
	p := harness.StartProvider(t)
	s := serveProvider(t, p, "admins: ["+boss+"]")
	check := func(what, credentials string, admin bool) {
		t.Helper()
		role, email := roleOf(t, s, credentials)
		if (role == "admin") != admin || (email == boss) != admin {
			t.Errorf("%s: the role is %s and the email %q", what, role, email)
		}
	}
	absent := "absent"
	for i, verified := range []any{absent, false, "false", "True", "yes", "", 0, 1, nil, []any{}, []any{true}, map[string]any{}} {
		subject := "mallory-" + string(rune('a'+i))
		claims := map[string]any{"sub": subject, "email": boss, "email_verified": verified}
		if verified == absent {
			delete(claims, "email_verified")
		}
		only := map[string]any{"sub": subject}
		check("a token", "Authorization: Bearer "+p.Token(claims), false)
		p.State(claims, only, only)
		check("an id token", p.LogIn(t, s), false)
		p.State(only, claims, only)
		check("an access token of a login", p.LogIn(t, s), false)
		p.State(only, only, claims)
		check("UserInfo", p.LogIn(t, s), false)
	}
	for i, verified := range []any{true, "true"} {
		claims := map[string]any{"sub": "boss-" + string(rune('a'+i)), "email": boss, "email_verified": verified}
		check("a token", "Authorization: Bearer "+p.Token(claims), true)
	}
}

func TestAnEmailAndItsVerificationMustComeFromOneSource(t *testing.T) {
	t.Parallel()
	p := harness.StartProvider(t)
	s := serveProvider(t, p, "admins: ["+boss+"]")
	flag := func(subject string, verified bool) map[string]any {
		return map[string]any{"sub": subject, "email_verified": verified}
	}
	only := func(subject string) map[string]any { return map[string]any{"sub": subject} }
	mail := func(subject string) map[string]any { return map[string]any{"sub": subject, "email": boss} }
	whole := map[string]any{"sub": "boss", "email": boss, "email_verified": true}
	for name, c := range map[string]struct {
		idToken, access, userInfo map[string]any
		admin                     bool
	}{
		"the flag in the id token, the email in UserInfo":                  {flag("a", true), only("a"), mail("a"), false},
		"the flag in the id token, the email in the access token":          {flag("b", true), mail("b"), only("b"), false},
		"the flag in the access token, the email in the id token":          {mail("c"), flag("c", true), only("c"), false},
		"the flag in UserInfo, the email in the id token":                  {mail("d"), only("d"), flag("d", true), false},
		"the flag and the email in UserInfo, another flag in the id token": {flag("boss", false), only("boss"), whole, true},
	} {
		p.State(c.idToken, c.access, c.userInfo)
		if role, email := roleOf(t, s, p.LogIn(t, s)); (role == "admin") != c.admin {
			t.Errorf("%s: the role is %s, the email %q", name, role, email)
		}
	}
}

func TestASettingTrustsProvidersWithoutTheVerificationClaim(t *testing.T) {
	t.Parallel()
	p := harness.StartProvider(t)
	s := serveProvider(t, p, "admins: ["+boss+"]", "assumeEmailVerified: true")
	if role, _ := roleOf(t, s, "Authorization: Bearer "+p.Token(map[string]any{"email": boss})); role != "admin" {
		t.Errorf("without the claim: %s", role)
	}
	for _, verified := range []any{false, "false", nil, 0} {
		claims := map[string]any{"sub": "mallory", "email": boss, "email_verified": verified}
		if role, _ := roleOf(t, s, "Authorization: Bearer "+p.Token(claims)); role != "member" {
			t.Errorf("with the claim %v: %s", verified, role)
		}
	}
}
