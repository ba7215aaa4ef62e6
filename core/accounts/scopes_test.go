package accounts

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

// Some servers refuse a login because of scopes that they or the app announce.
func TestRefusedScopesAreOmitted(t *testing.T) {
	for _, c := range []struct {
		name  string
		auth  core.RemoteAuth
		want  Want
		known []string // scopes that the server lists
		tries []string // the scopes of the later logins
	}{
		{name: "scopes of the app", auth: core.RemoteAuth{Type: core.AuthUser}, want: Want{App: "far"}, tries: []string{""}},
		{name: "scopes of the app, at a server with long-lived tokens", auth: core.RemoteAuth{Type: core.AuthUser}, want: Want{App: "far"}, known: []string{offline}, tries: []string{offline, ""}},
		{name: "scopes of the operator", auth: core.RemoteAuth{Type: core.AuthUser, Scopes: "read"}, want: Want{App: "far"}},
		{name: "scopes that a call needs", auth: core.RemoteAuth{Type: core.AuthUser}, want: Want{App: "far", Scopes: []string{"more"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProvider(t)
			p.metadata["scopes_supported"] = c.known
			r := newRig(t, p, c.auth)
			start, err := r.begin(t, r.caller, c.want, callback)
			if err != nil {
				t.Fatal(err)
			}
			refuse := func() (again Start, err error) {
				refusal := p.consent(t, start.URL)
				refusal.Binding, refusal.Code, refusal.Error = start.Binding, "", "invalid_scope"
				_, again, err = r.Finish(t.Context(), as(r.caller), refusal)
				return again, err
			}
			for _, scope := range c.tries {
				again, err := refuse()
				if err != nil {
					t.Fatal(err)
				}
				before, after := query(t, start.URL), query(t, again.URL)
				if after.Get("scope") != scope || after.Has("scope") != (scope != "") || after.Get("state") == before.Get("state") || again.Binding == start.Binding {
					t.Errorf("the browser is sent to %s", again.URL)
				}
				start = again
			}
			if again, err := refuse(); core.CodeOf(err) != core.CodeForbidden || again.URL != "" {
				t.Errorf("the server refuses the last login: %v", err)
			}
			if all, err := r.store.Accounts(t.Context(), core.DefaultWorkspaceID); err != nil || len(all) > 0 {
				t.Errorf("linked: %v %v", all, err)
			}
		})
	}
}

// Keycloak reports only at the token request that a person may not have long-lived tokens.
func TestAPersonWhoGetsNoLongLivedTokensLinksAnAccountWithoutThem(t *testing.T) {
	p := newProvider(t)
	p.metadata["scopes_supported"] = []string{offline}
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	start, err := r.begin(t, r.caller, Want{App: "far"}, callback)
	if err != nil {
		t.Fatal(err)
	}
	finish := func() (core.Account, Start, error) {
		response := p.consent(t, start.URL)
		response.Binding = start.Binding
		return r.Finish(t.Context(), as(r.caller), response)
	}
	p.change(func(p *provider) {
		responds("/token", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"not_allowed","error_description":"Offline tokens not allowed for the user or client"}`)
		})(p, nil)
	})
	_, again, err := finish()
	if err != nil || again.URL == "" || !strings.Contains(query(t, start.URL).Get("scope"), offline) || strings.Contains(query(t, again.URL).Get("scope"), offline) {
		t.Fatalf("first %s, then %s: %v", start.URL, again.URL, err)
	}
	p.change(func(p *provider) { p.fail = nil })
	start = again
	if a, _, err := finish(); err != nil || a.State != core.AccountActive || slices.Contains(a.Scopes, offline) {
		t.Errorf("%+v: %v", a, err)
	}
}
