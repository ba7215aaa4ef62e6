package accounts

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

func TestAnAccountIsLinkedWithDiscoveryRegistrationAndPKCE(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	consent, err := r.Prepare(t.Context(), r.caller, Want{App: "far"})
	if err != nil {
		t.Fatal(err)
	}
	if consent.Issuer != p.URL || consent.Name != DefaultName || consent.Shared || !slices.Equal(consent.Scopes, []string{"read", "write"}) {
		t.Errorf("the page asks for %+v", consent)
	}
	start, err := r.begin(t, r.caller, Want{App: "far"}, callback)
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse(start.URL)
	q := u.Query()
	for name, want := range map[string]string{
		"response_type": "code", "client_id": "registered", "redirect_uri": callback, "resource": p.URL + "/mcp", "scope": "read write", "code_challenge_method": "S256",
	} {
		if q.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, q.Get(name), want)
		}
	}
	answer := p.consent(t, start.URL)
	answer.Binding = start.Binding
	a, _, err := r.Finish(t.Context(), as(r.caller), answer)
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := r.Choose(t.Context(), r.caller, "far", core.AccountWanted{ReadOnly: true})
	if err != nil || chosen.ID != a.ID || !chosen.Default || chosen.Owner != r.caller.User.ID {
		t.Errorf("a call uses %+v: %v", chosen, err)
	}
	token, err := r.Authorizer(a.ID).Token(t.Context(), "")
	if err != nil || !strings.HasPrefix(token.Access.Reveal(), "access-grant") || token.Resource != p.URL+"/mcp" {
		t.Errorf("the token is %q for %s: %v", token.Access.Reveal(), token.Resource, err)
	}
	if names := r.eventNames(); !slices.Equal(names, []string{core.EventAccountLinked}) {
		t.Errorf("events: %v", names)
	}
	r.link(t, p, r.caller, "second")
	if n := p.count("/register"); n != 1 {
		t.Errorf("this server registered %d times", n)
	}
}

// Each case changes one detail of a login that would otherwise succeed.
func TestAMismatchedLoginIsRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(r *rig, a *Answer)
		as     string
		code   core.Code
	}{
		{name: "another state", change: func(_ *rig, a *Answer) { a.State = "x" }, code: core.CodeForbidden},
		{name: "no state", change: func(_ *rig, a *Answer) { a.State = "" }, code: core.CodeForbidden},
		{name: "another browser", change: func(_ *rig, a *Answer) { a.Binding = "x" }, code: core.CodeForbidden},
		{name: "a browser without the cookie", change: func(_ *rig, a *Answer) { a.Binding = "" }, code: core.CodeForbidden},
		{name: "another person", change: func(*rig, *Answer) {}, as: "mallory", code: core.CodeForbidden},
		{name: "the issuer of another server", change: func(_ *rig, a *Answer) { a.Issuer = "https://other.example" }, code: core.CodeForbidden},
		{name: "an issuer with a slash more", change: func(_ *rig, a *Answer) { a.Issuer += "/" }, code: core.CodeForbidden},
		{name: "no issuer where the server states one", change: func(_ *rig, a *Answer) { a.Issuer = "" }, code: core.CodeForbidden},
		{name: "a refusal", change: func(_ *rig, a *Answer) { a.Error = "access_denied" }, code: core.CodeForbidden},
		{name: "a refusal with a code", change: func(_ *rig, a *Answer) { a.Error = "server_error" }, code: core.CodeForbidden},
		{name: "no code", change: func(_ *rig, a *Answer) { a.Code = "" }, code: core.CodeForbidden},
		{name: "another code", change: func(_ *rig, a *Answer) { a.Code = "code0" }, code: core.CodeUnavailable},
		{name: "another app of that name", change: func(r *rig, _ *Answer) {
			in, _ := r.store.Installation(t.Context(), core.DefaultWorkspaceID, "far")
			_ = r.store.DeleteInstallation(t.Context(), core.DefaultWorkspaceID, "far", in.ID)
			in.ID = "second"
			_ = r.store.AddInstallation(t.Context(), in)
		}, code: core.CodeConflict},
		{name: "an app that is gone", change: func(r *rig, _ *Answer) {
			_ = r.store.DeleteInstallation(t.Context(), core.DefaultWorkspaceID, "far", "first")
		}, code: core.CodeConflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProvider(t)
			r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
			answer := r.consented(t, p)
			c.change(r, &answer)
			person := r.caller
			if c.as != "" {
				person = r.person(t, c.as)
			}
			_, _, err := r.Finish(t.Context(), as(person), answer)
			if core.CodeOf(err) != c.code {
				t.Errorf("%v, want %s", err, c.code)
			}
			for shown := err; shown != nil; shown = errors.Unwrap(shown) { // the log has the cause, too
				if strings.Contains(shown.Error(), "secret-in-the-answer") {
					t.Errorf("the error shows what the server answered: %v", shown)
				}
			}
			if all, err := r.store.Accounts(t.Context(), core.DefaultWorkspaceID); err != nil || len(all) > 0 {
				t.Errorf("linked: %v %v", all, err)
			}
		})
	}
}

func TestALoginCanBeFinishedOnlyOnce(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	answer := r.consented(t, p)
	if _, _, err := r.Finish(t.Context(), as(r.caller), answer); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Finish(t.Context(), as(r.caller), answer); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("a state that was used: %v", err)
	}
}

// An app shows one thing on the page, and asks for another once the person has agreed.
func TestAPersonConsentsOnlyToWhatThePageShowed(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(r *rig, p *provider)
		code   core.Code
	}{
		{"nothing changed", func(*rig, *provider) {}, ""},
		{"more rights", func(_ *rig, p *provider) { p.resource["scopes_supported"] = []string{"admin"}; p.silent = true }, core.CodeConflict},
		{"another page to log in at", func(_ *rig, p *provider) { p.metadata["authorization_endpoint"] = p.URL + "/other" }, core.CodeConflict},
		{"another account of that name", func(r *rig, p *provider) { r.link(t, p, r.caller, "") }, core.CodeConflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProvider(t)
			r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
			consent, err := r.Prepare(t.Context(), r.caller, Want{App: "far"})
			if err != nil {
				t.Fatal(err)
			}
			c.change(r, p)
			if _, err := r.Begin(t.Context(), r.caller, Want{App: "far", Agreed: consent.Digest()}, callback); core.CodeOf(err) != c.code && (err != nil || c.code != "") {
				t.Errorf("%v, want %q", err, c.code)
			}
		})
	}
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	if _, err := r.Begin(t.Context(), r.caller, Want{App: "far"}, callback); core.CodeOf(err) != core.CodeConflict {
		t.Errorf("without agreement: %v", err)
	}
}

// Each case takes away a right while the person is at the authorization server.
func TestAUserWhoLosesTheRightDuringALoginCannotLinkAnAccount(t *testing.T) {
	for _, c := range []struct {
		name, auth string
		change     func(r *rig, admin *core.Caller) error
		code       core.Code
		revoked    int // tokens
	}{
		{"an admin who becomes a member", core.AuthShared, func(_ *rig, admin *core.Caller) error {
			admin.Workspace.Role = core.RoleMember
			return nil
		}, core.CodeForbidden, 0},
		{"a member who is removed at the last moment", core.AuthUser, func(r *rig, admin *core.Caller) error {
			return r.store.DeleteMember(t.Context(), core.DefaultWorkspaceID, admin.User.ID)
		}, core.CodeForbidden, 2},
		{"an app that now uses a shared account", core.AuthUser, func(r *rig, _ *core.Caller) error {
			_, err := r.store.ChangeInstallation(t.Context(), core.DefaultWorkspaceID, "far", func(in *core.Installation) error {
				in.Remote.Auth.Type = core.AuthShared
				return nil
			})
			return err
		}, core.CodeConflict, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProvider(t)
			r := newRig(t, p, core.RemoteAuth{Type: c.auth})
			admin := r.person(t, "admin")
			admin.Workspace.Role = core.RoleAdmin
			start, err := r.begin(t, admin, Want{App: "far"}, callback)
			if err != nil {
				t.Fatal(err)
			}
			answer := p.consent(t, start.URL)
			answer.Binding = start.Binding
			if err := c.change(r, &admin); err != nil {
				t.Fatal(err)
			}
			if _, _, err := r.Finish(t.Context(), as(admin), answer); core.CodeOf(err) != c.code {
				t.Errorf("%v, want %s", err, c.code)
			}
			if all, err := r.store.Accounts(t.Context(), core.DefaultWorkspaceID); err != nil || len(all) > 0 {
				t.Errorf("linked: %v %v", all, err)
			}
			if n := p.count("/revoke"); n != c.revoked {
				t.Errorf("%d tokens were revoked, want %d", n, c.revoked)
			}
		})
	}
}

func TestAnotherUsersAnswerUsesUpNoAccount(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	other := r.person(t, "mallory")
	start, err := r.begin(t, other, Want{App: "far"}, callback)
	if err != nil {
		t.Fatal(err)
	}
	answer := p.consent(t, start.URL) // alice's browser gets mallory's code
	if _, _, err := r.Finish(t.Context(), as(r.caller), answer); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("alice got the account of mallory: %v", err)
	}
}

func TestServerQuirksAreHandled(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p *provider)
	}{
		{"metadata at the root", func(p *provider) {
			p.fail = func(w http.ResponseWriter, r *http.Request) bool {
				switch r.URL.Path {
				case "/mcp":
					w.WriteHeader(http.StatusUnauthorized)
				case "/.well-known/oauth-protected-resource/mcp":
					w.WriteHeader(http.StatusNotFound)
				case "/.well-known/oauth-protected-resource":
					p.document(w, map[string]any{"resource": p.URL, "authorization_servers": []string{p.URL}}, nil)
				default:
					return false
				}
				return true
			}
		}},
		{"no metadata of the app", func(p *provider) {
			p.fail = func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.URL.Path == "/mcp":
					w.WriteHeader(http.StatusUnauthorized)
				case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource"):
					w.WriteHeader(http.StatusNotFound)
				default:
					return false
				}
				return true
			}
		}},
		{"an issuer with a path", tenant("/tenant", "/.well-known/oauth-authorization-server/tenant")},
		{"OpenID metadata below the issuer", tenant("/tenant/", "/tenant/.well-known/openid-configuration")},
		{"registration that returns 200", func(p *provider) {
			p.fail = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/register" {
					_, _ = w.Write([]byte(`{"client_id":"registered"}`))
					return true
				}
				return false
			}
		}},
		{"no expiry", func(p *provider) { p.life = 0 }},
		{"no scopes", func(p *provider) {
			p.fail = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/mcp" {
					w.WriteHeader(http.StatusUnauthorized)
					return true
				}
				return false
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProvider(t)
			r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
			p.change(c.change)
			answer := r.consented(t, p)
			if strings.Contains(c.name, "issuer") {
				answer.Issuer = "" // this server does not state it
			}
			a, _, err := r.Finish(t.Context(), as(r.caller), answer)
			if err != nil {
				t.Fatal(err)
			}
			if token, err := r.Authorizer(a.ID).Token(t.Context(), ""); err != nil || token.Access == "" {
				t.Errorf("%v", err)
			}
		})
	}
}

// Some servers refuse a login for scopes that they or the app announce.
func TestRefusedScopesAreOmitted(t *testing.T) {
	for _, c := range []struct {
		name string
		auth core.RemoteAuth
		want Want
		code core.Code
	}{
		{"scopes of the app", core.RemoteAuth{Type: core.AuthUser}, Want{App: "far"}, ""},
		{"scopes of the operator", core.RemoteAuth{Type: core.AuthUser, Scopes: "read"}, Want{App: "far"}, core.CodeForbidden},
		{"scopes that a call needs", core.RemoteAuth{Type: core.AuthUser}, Want{App: "far", Scopes: []string{"more"}}, core.CodeForbidden},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProvider(t)
			r := newRig(t, p, c.auth)
			start, err := r.begin(t, r.caller, c.want, callback)
			if err != nil {
				t.Fatal(err)
			}
			refusal := p.consent(t, start.URL)
			refusal.Binding, refusal.Code, refusal.Error = start.Binding, "", "invalid_scope"
			_, again, err := r.Finish(t.Context(), as(r.caller), refusal)
			if c.code != "" {
				if core.CodeOf(err) != c.code {
					t.Errorf("%v, want %s", err, c.code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			answer := p.consent(t, again.URL)
			answer.Binding = again.Binding
			if u, err := url.Parse(again.URL); err != nil || u.Query().Has("scope") || answer.State == refusal.State || again.Binding == start.Binding {
				t.Errorf("the browser is sent to %s: %v", again.URL, err)
			}
			answer.Error = "invalid_scope"
			if _, twice, err := r.Finish(t.Context(), as(r.caller), answer); core.CodeOf(err) != core.CodeForbidden || twice.URL != "" {
				t.Errorf("the server refuses a login without scopes: %v", err)
			}
			if all, err := r.store.Accounts(t.Context(), core.DefaultWorkspaceID); err != nil || len(all) > 0 {
				t.Errorf("linked: %v %v", all, err)
			}
		})
	}
}

// A server that doesn't state its issuer gets a redirect URI of its own. It does not get the metadata document: every
// authorization server would accept that, and send a code on to whoever the redirect URI belongs to.
func TestAServerThatStatesNoIssuerGetsItsOwnRedirectURI(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	r.o.BaseURL = "https://tools.example.com"
	p.change(func(p *provider) {
		silent(p, nil)
		p.metadata["client_id_metadata_document_supported"] = true
	})
	start, err := r.begin(t, r.caller, Want{App: "far"}, r.o.BaseURL+CallbackPath)
	if err != nil {
		t.Fatal(err)
	}
	answer := p.consent(t, start.URL)
	u, _ := url.Parse(start.URL)
	if len(answer.Mark) != markLength || u.Query().Get("client_id") != "registered" {
		t.Errorf("%s", start.URL)
	}
	answer.Binding, answer.Issuer = start.Binding, ""
	if _, _, err := r.Finish(t.Context(), as(r.caller), answer); err != nil {
		t.Error(err)
	}
	p.change(func(p *provider) { p.metadata["registration_endpoint"] = "" })
	if _, err := r.begin(t, r.caller, Want{App: "far"}, r.o.BaseURL+CallbackPath); core.CodeOf(err) != core.CodeNotConfigured || !strings.Contains(err.Error(), r.o.BaseURL+CallbackPath+",") {
		t.Errorf("without registration: %v", err)
	}
}

func TestAConfiguredClientComesBeforeRegistration(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser, ClientID: "configured", Scopes: "only"})
	start, err := r.begin(t, r.caller, Want{App: "far"}, callback)
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse(start.URL)
	if u.Query().Get("client_id") != "configured" || u.Query().Get("scope") != "only" || p.count("/register") != 0 {
		t.Errorf("the browser is sent to %s", start.URL)
	}
}

func TestTheMetadataDocumentIsUsedAtAPublicAddress(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	r.o.BaseURL = "https://tools.example.com"
	p.change(func(p *provider) { p.metadata["client_id_metadata_document_supported"] = true })
	start, err := r.begin(t, r.caller, Want{App: "far"}, r.o.BaseURL+CallbackPath)
	if err != nil {
		t.Fatal(err)
	}
	document, err := r.Document()
	u, _ := url.Parse(start.URL)
	if err != nil || u.Query().Get("client_id") != "https://tools.example.com/v1/accounts/client" || document.ID != u.Query().Get("client_id") ||
		!slices.Equal(document.RedirectURIs, []string{u.Query().Get("redirect_uri")}) {
		t.Errorf("%s, and the document is %+v: %v", start.URL, document, err)
	}
	for _, base := range []string{"", "http://tools.example.com", "https://localhost", "https://127.0.0.1", "https://10.0.0.1", "https://intranet"} {
		if r.o.BaseURL = base; r.isPublic() {
			t.Errorf("authorization servers are sent to %q", base)
		}
	}
}

// tenant gives a provider's issuer a path, with the metadata only in one place.
func tenant(issuer, metadata string) func(p *provider) {
	return func(p *provider) {
		p.resource["authorization_servers"] = []string{p.URL + issuer}
		p.fail = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != metadata {
				return false
			}
			p.document(w, map[string]any{
				"issuer": p.URL + "/tenant", "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "registration_endpoint": p.URL + "/register",
				"code_challenge_methods_supported": []string{"S256"},
			}, nil)
			return true
		}
	}
}

func TestAPersonLinksALimitedNumberOfAccountsAtAnApp(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	a := r.link(t, p, r.caller, "")
	for i := range core.MaxAccounts {
		a.Name = fmt.Sprintf("n%d", i)
		_, err := r.store.LinkAccount(t.Context(), a)
		if full := i == core.MaxAccounts-1; full != (core.CodeOf(err) == core.CodeLimitReached) || !full && err != nil {
			t.Fatalf("account %d: %v", i+2, err)
		}
	}
	r.Changed("")
	if _, err := r.Prepare(t.Context(), r.caller, Want{App: "far", Name: "more"}); core.CodeOf(err) != core.CodeLimitReached {
		t.Errorf("the page for one more: %v", err)
	}
	r.link(t, p, r.caller, "") // a new login for an account that is linked
	r.link(t, p, r.person(t, "bob"), "")
	listed, err := r.inWorkspace(t.Context(), core.DefaultWorkspaceID)
	if err != nil || len(listed) != 2 {
		t.Fatalf("%d people: %v", len(listed), err)
	}
	all := slices.Concat(slices.Collect(maps.Values(listed))...)
	if len(all) != core.MaxAccounts+1 {
		t.Fatalf("%d accounts", len(all))
	}
	for _, one := range all {
		if one.Grant.AccessToken != "" || one.Grant.RefreshToken != "" {
			t.Errorf("the tokens of account %s are kept in memory", one.Name)
		}
	}
}

func TestALargeRefreshTokenIsRefused(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	answer := r.consented(t, p)
	p.change(func(p *provider) {
		p.fail = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/token" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token":"a","token_type":"bearer","refresh_token":"`+strings.Repeat("r", maxToken+1)+`"}`)
			return true
		}
	})
	if _, _, err := r.Finish(t.Context(), as(r.caller), answer); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("it was linked: %v", err)
	}
}
