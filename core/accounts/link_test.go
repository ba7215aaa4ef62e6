package accounts

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store"
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
	response := p.consent(t, start.URL)
	response.Binding = start.Binding
	a, _, err := r.Finish(t.Context(), as(r.caller), response)
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
		change func(r *rig, a *Response)
		as     string
		code   core.Code
	}{
		{name: "another state", change: func(_ *rig, a *Response) { a.State = "x" }, code: core.CodeForbidden},
		{name: "no state", change: func(_ *rig, a *Response) { a.State = "" }, code: core.CodeForbidden},
		{name: "another browser", change: func(_ *rig, a *Response) { a.Binding = "x" }, code: core.CodeForbidden},
		{name: "a browser without the cookie", change: func(_ *rig, a *Response) { a.Binding = "" }, code: core.CodeForbidden},
		{name: "another person", change: func(*rig, *Response) {}, as: "mallory", code: core.CodeForbidden},
		{name: "the issuer of another server", change: func(_ *rig, a *Response) { a.Issuer = "https://other.example" }, code: core.CodeForbidden},
		{name: "an issuer with an extra slash", change: func(_ *rig, a *Response) { a.Issuer += "/" }, code: core.CodeForbidden},
		{name: "no issuer, if the server sends one", change: func(_ *rig, a *Response) { a.Issuer = "" }, code: core.CodeForbidden},
		{name: "a refusal", change: func(_ *rig, a *Response) { a.Error = "access_denied" }, code: core.CodeForbidden},
		{name: "a refusal with a code", change: func(_ *rig, a *Response) { a.Error = "server_error" }, code: core.CodeForbidden},
		{name: "no code", change: func(_ *rig, a *Response) { a.Code = "" }, code: core.CodeForbidden},
		{name: "another code", change: func(_ *rig, a *Response) { a.Code = "code0" }, code: core.CodeUnavailable},
		{name: "another app of that name", change: func(r *rig, _ *Response) {
			in, _ := r.store.Installation(t.Context(), core.DefaultWorkspaceID, "far")
			_ = r.store.DeleteInstallation(t.Context(), core.DefaultWorkspaceID, "far", in.ID)
			in.ID = "second"
			_ = r.store.AddInstallation(t.Context(), in)
		}, code: core.CodeConflict},
		{name: "an app that is gone", change: func(r *rig, _ *Response) {
			_ = r.store.DeleteInstallation(t.Context(), core.DefaultWorkspaceID, "far", "first")
		}, code: core.CodeConflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProvider(t)
			r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
			response := r.consented(t, p)
			c.change(r, &response)
			person := r.caller
			if c.as != "" {
				person = r.person(t, c.as)
			}
			_, _, err := r.Finish(t.Context(), as(person), response)
			if core.CodeOf(err) != c.code {
				t.Errorf("%v, want %s", err, c.code)
			}
			for shown := err; shown != nil; shown = errors.Unwrap(shown) { // the log has the cause, too
				if strings.Contains(shown.Error(), "secret-in-the-response") {
					t.Errorf("the error shows the server's response: %v", shown)
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
	response := r.consented(t, p)
	if _, _, err := r.Finish(t.Context(), as(r.caller), response); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Finish(t.Context(), as(r.caller), response); core.CodeOf(err) != core.CodeForbidden {
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
			response := p.consent(t, start.URL)
			response.Binding = start.Binding
			if err := c.change(r, &admin); err != nil {
				t.Fatal(err)
			}
			if _, _, err := r.Finish(t.Context(), as(admin), response); core.CodeOf(err) != c.code {
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

func TestAnotherUsersResponseLinksNoAccount(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	other := r.person(t, "mallory")
	start, err := r.begin(t, other, Want{App: "far"}, callback)
	if err != nil {
		t.Fatal(err)
	}
	response := p.consent(t, start.URL) // alice's browser gets mallory's code
	if _, _, err := r.Finish(t.Context(), as(r.caller), response); core.CodeOf(err) != core.CodeForbidden {
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
		{"no app metadata", func(p *provider) {
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
		{"a page for every unknown path", func(p *provider) {
			p.fail = func(w http.ResponseWriter, r *http.Request) bool {
				switch r.URL.Path {
				case "/mcp":
					w.WriteHeader(http.StatusUnauthorized)
				case "/.well-known/oauth-protected-resource":
					p.document(w, map[string]any{"resource": p.URL, "authorization_servers": []string{p.URL}}, nil)
				case "/.well-known/openid-configuration":
					r.URL.Path = "/.well-known/oauth-authorization-server"
					return false
				case "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server":
					_, _ = w.Write([]byte("<html>"))
				default:
					return false
				}
				return true
			}
		}},
		{"an issuer with a path", tenant("/tenant", "/.well-known/oauth-authorization-server/tenant")},
		{"OpenID metadata under the issuer", tenant("/tenant/", "/tenant/.well-known/openid-configuration")},
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
			response := r.consented(t, p)
			if strings.Contains(c.name, "issuer") {
				response.Issuer = "" // this server does not send it
			}
			a, _, err := r.Finish(t.Context(), as(r.caller), response)
			if err != nil {
				t.Fatal(err)
			}
			if token, err := r.Authorizer(a.ID).Token(t.Context(), ""); err != nil || token.Access == "" {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestAPersonCanLinkOnlyALimitedNumberOfAccountsPerApp(t *testing.T) {
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
	response := r.consented(t, p)
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
	if _, _, err := r.Finish(t.Context(), as(r.caller), response); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("it was linked: %v", err)
	}
}

func TestLongLivedTokensAreRequestedAsEachServerExpects(t *testing.T) {
	r := newRig(t, newProvider(t), core.RemoteAuth{Type: core.AuthUser})
	for _, c := range []struct{ issuer, scope, prompt, access string }{
		{"https://idp.example", "read", "", ""}, {"https://idp.example", offline, "consent", ""}, {google, "read", "consent", "offline"},
	} {
		start, err := r.send(t.Context(), pending{Issuer: c.issuer, Authorize: c.issuer + "/authorize", Scopes: []string{c.scope}})
		if err != nil {
			t.Fatal(err)
		}
		if q := query(t, start.URL); q.Get("prompt") != c.prompt || q.Get("access_type") != c.access {
			t.Errorf("%+v: %s", c, start.URL)
		}
	}
}

// keyless is a store without a key.
type keyless struct {
	*store.Store
	encrypts atomic.Bool
}

func (k *keyless) Encrypts() bool { return k.encrypts.Load() }

func TestConcurrentFirstLoginsCreateOneKey(t *testing.T) {
	r := newRig(t, newProvider(t), core.RemoteAuth{Type: core.AuthUser})
	k := &keyless{Store: r.store}
	var created atomic.Int32
	r.o.Store, r.o.MakeKey = k, func() error {
		created.Add(1)
		for range 1000 {
			runtime.Gosched()
		}
		k.encrypts.Store(true)
		return nil
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := r.ensureKey(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if created.Load() != 1 {
		t.Errorf("%d keys were created", created.Load())
	}
}
