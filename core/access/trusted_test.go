package access

import (
	"encoding/base64"
	"fmt"
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// jwt returns a token from an issuer that p accepts.
func jwt(p *provider, issuer, subject string) string {
	token := "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"iss":%q,"sub":%q}`, issuer, subject)) + ".c2ln"
	p.tokens[token] = p.identity(subject)
	return token
}

// several returns an Access with two providers.
func several(t *testing.T) (a *Access, one, two *provider) {
	t.Helper()
	state := openState(t)
	one, two = newProvider("https://one", "alice"), newProvider("https://two", "bob")
	a = New(Options{Audiences: []string{"https://base"}, Users: state, Cookies: state, Keys: state, Enroller: state, Providers: []Provider{
		{Name: "one", Adapter: one, Audiences: []string{"client-of-one"}, Enrollment: Enrollment{Admins: []string{"carol@x.y"}}},
		{Name: "two", Adapter: two},
	}})
	return a, one, two
}

func TestATokenIsCheckedByItsIssuersProvider(t *testing.T) {
	a, one, two := several(t)
	want(t, "a token from the second", outcome(a.MCP(t.Context(), jwt(two, "https://two", "dora"), "")), "dora")
	if one.calls.Load() != 0 || !slices.Equal(two.asked[0].Audiences, []string{"https://base"}) {
		t.Errorf("the first provider was called %d times, the second for %q", one.calls.Load(), two.asked[0].Audiences)
	}
	want(t, "a token from the first", outcome(a.MCP(t.Context(), jwt(one, "https://one", "carol"), "")), "carol")
	if two.calls.Load() != 1 || !slices.Equal(one.asked[0].Audiences, []string{"https://base", "client-of-one"}) {
		t.Errorf("the second provider was called %d times, the first for %q", two.calls.Load(), one.asked[0].Audiences)
	}
}

func TestATokenWithoutAnIssuerIsTriedWithEachProvider(t *testing.T) {
	a, one, two := several(t)
	want(t, "a token from the first", outcome(a.MCP(t.Context(), "token-of-alice", "")), "alice")
	want(t, "a token from the second", outcome(a.MCP(t.Context(), "token-of-bob", "")), "bob")
	want(t, "a token from neither", outcome(a.MCP(t.Context(), "token-of-nobody", "")), "unauthenticated")
	want(t, "a token from an unknown issuer", outcome(a.MCP(t.Context(), "e30.eyJpc3MiOiJ4In0.c2ln", "")), "unauthenticated")
	one.set(func(p *provider) { p.down = true })
	two.tokens["another-token"] = two.identity("erin")
	want(t, "a token from the second, while the first is down", outcome(a.MCP(t.Context(), "another-token", "")), "erin")
	want(t, "a token that may be from the first, which is down", outcome(a.MCP(t.Context(), "token-of-somebody", "")), "unavailable")
}

func TestAProviderVouchesOnlyForItsOwnIssuer(t *testing.T) {
	a, one, two := several(t)
	two.tokens["forged"] = auth.Identity{Issuer: "https://one", Subject: "alice", ExpiresAt: two.identity("x").ExpiresAt}
	want(t, "a token for a person from another provider", outcome(a.MCP(t.Context(), "forged", "")), "unauthenticated")
	if one.calls.Load() == 0 || two.calls.Load() == 0 {
		t.Error("not every provider was called")
	}
}

func TestOneProvidersAdminsAreNotAdminsWithAnother(t *testing.T) {
	a, one, two := several(t)
	for p, role := range map[*provider]core.Role{one: core.RoleAdmin, two: core.RoleMember} {
		id, err := a.MCP(t.Context(), jwt(p, p.issuer, "carol"), "")
		if err != nil || id.User.OrgRole != role {
			t.Errorf("carol from %s is %s, want %s: %v", p.issuer, id.User.OrgRole, role, err)
		}
	}
}

func TestABrowserLogsInWithTheProviderItChose(t *testing.T) {
	a, one, two := several(t)
	if names, err := a.LoginProviders(t.Context()); err != nil || !slices.Equal(names, []string{"one", "two"}) {
		t.Fatalf("got %q, %v", names, err)
	}
	login := func(name, subject string) string {
		t.Helper()
		start, err := a.BeginLogin(t.Context(), LoginRequest{Provider: name, RedirectURI: "https://base/v1/auth/callback", ReturnTo: "/"})
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
	alice, bob := login("", "alice"), login("two", "bob")
	if len(one.starts) != 1 || len(two.starts) != 1 {
		t.Errorf("%d logins began with the first provider, %d with the second", len(one.starts), len(two.starts))
	}
	_, err := a.BeginLogin(t.Context(), LoginRequest{Provider: "three", RedirectURI: "https://base/v1/auth/callback", ReturnTo: "/"})
	want(t, "an unknown provider", string(core.CodeOf(err)), "bad_request")
	want(t, "a login with the first", outcome(a.API(t.Context(), "", alice)), "alice")
	want(t, "a login with the second", outcome(a.API(t.Context(), "", bob)), "bob")

	begun, err := a.BeginLogin(t.Context(), LoginRequest{Provider: "one", RedirectURI: "https://base/v1/auth/callback", ReturnTo: "/"})
	if err != nil {
		t.Fatal(err)
	}
	a.SetProviders([]Provider{{Name: "one", Adapter: one}}, []string{"https://base"})
	want(t, "a login with the first, after the second was removed", outcome(a.API(t.Context(), "", alice)), "alice")
	want(t, "a login with the second, which was removed", outcome(a.API(t.Context(), "", bob)), "unauthenticated")
	if _, err := a.FinishLogin(t.Context(), LoginAnswer{State: stateOf(t, begun), Code: "code-of-alice", Binding: begun.Binding}); err != nil {
		t.Errorf("a login that began before the reload: %v", err)
	}
}

// A malicious or compromised provider may redirect a browser that started to log in with it to another provider of this
// server, and would then receive that provider's code (RFC 9207 section 1, mix-up attack).
func TestALoginRefusesAResponseFromAnotherProvider(t *testing.T) {
	a, one, two := several(t)
	for name, c := range map[string]struct {
		stated, want string
		states       bool
	}{
		"from the other provider":                                  {"https://one", "unauthenticated", false},
		"from the other provider, if responses contain the issuer": {"https://one", "unauthenticated", true},
		"from an unknown issuer":                                   {"https://two/", "unauthenticated", true},
		"without an issuer, if responses contain it":               {"", "unauthenticated", true},
		"without an issuer, if responses need not contain it":      {"", "", false},
		"from the provider":                                        {"https://two", "", true},
	} {
		two.set(func(p *provider) { p.states = c.states })
		start, err := a.BeginLogin(t.Context(), LoginRequest{Provider: "two", RedirectURI: "https://base/v1/auth/callback", ReturnTo: "/"})
		if err != nil {
			t.Fatal(err)
		}
		before := two.exchanges.Load() + one.exchanges.Load()
		_, err = a.FinishLogin(t.Context(), LoginAnswer{State: stateOf(t, start), Code: "code-of-bob", Issuer: c.stated, Binding: start.Binding})
		if (err == nil) != (c.want == "") || err != nil && string(core.CodeOf(err)) != c.want {
			t.Errorf("a response %s: got %v, want %q", name, err, c.want)
		}
		if shown := two.exchanges.Load() + one.exchanges.Load() - before; (shown > 0) != (c.want == "") {
			t.Errorf("a response %s: its code was sent to a provider %d times", name, shown)
		}
	}
}

func TestTheDiscoveryDocumentListsAllProvidersServers(t *testing.T) {
	a, _, _ := several(t)
	about, err := a.Describe(t.Context())
	if err != nil || about.Issuer != "https://one" || !slices.Equal(about.AuthorizationServers, []string{"https://one", "https://two"}) {
		t.Errorf("got %+v, %v", about, err)
	}
}
