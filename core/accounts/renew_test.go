package accounts

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

func TestConcurrentCallsRenewTheTokenOnce(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	a := r.link(t, p, r.caller, "")
	r.expire(t, a.ID)
	tokens := make([]core.Secret, 200)
	var calls sync.WaitGroup
	for i := range tokens {
		calls.Go(func() {
			token, err := r.Authorizer(a.ID).Token(t.Context(), "")
			if err != nil {
				t.Error(err)
			}
			tokens[i] = token.Access
		})
	}
	calls.Wait()
	if n := p.count("/token refresh_token"); n != 1 {
		t.Errorf("%d renewals", n)
	}
	if all := slices.Compact(tokens); len(all) != 1 || all[0] == a.Grant.AccessToken {
		t.Errorf("%d tokens", len(all))
	}
}

func TestAFreshTokenThatIsRefusedIsNotRenewed(t *testing.T) {
	p := newProvider(t)
	p.life = 0
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	a := r.link(t, p, r.caller, "")
	if _, err := r.Authorizer(a.ID).Token(t.Context(), a.Grant.AccessToken); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("a fresh token that was refused is renewed again: %v", err)
	}
	if n := p.count("/token refresh_token"); n != 0 {
		t.Errorf("%d renewals", n)
	}
}

func TestRenewalQuirksAreHandled(t *testing.T) {
	t.Run("no new refresh token", func(t *testing.T) {
		p := newProvider(t)
		r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
		a := r.link(t, p, r.caller, "")
		p.change(func(p *provider) {
			responds("/token", func(w http.ResponseWriter, r *http.Request) {
				if r.PostForm.Get("refresh_token") != a.Grant.RefreshToken.Reveal() {
					refuse(w, "invalid_grant")
					return
				}
				p.number++
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"access_token":"access-%d","token_type":"Bearer","expires_in":3600}`, p.number)
			})(p, nil)
		})
		last := a.Grant.AccessToken
		for range 3 {
			r.expire(t, a.ID)
			token, err := r.Authorizer(a.ID).Token(t.Context(), "")
			if err != nil || token.Access == last {
				t.Errorf("%v", err)
			}
			last = token.Access
		}
	})
	t.Run("no expiry, and refused after a while", func(t *testing.T) {
		p := newProvider(t)
		p.life = 0
		r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
		a := r.link(t, p, r.caller, "")
		if _, err := r.store.RenewAccount(t.Context(), a.ID, func(_ context.Context, a *core.Account) (bool, error) {
			a.Grant.RenewedAt = time.Now().Add(-time.Hour)
			return true, nil
		}); err != nil {
			t.Fatal(err)
		}
		r.Changed(a.ID)
		if token, err := r.Authorizer(a.ID).Token(t.Context(), a.Grant.AccessToken); err != nil || token.Access == a.Grant.AccessToken {
			t.Errorf("%v", err)
		}
	})
	t.Run("no refresh token", func(t *testing.T) {
		p := newProvider(t)
		p.change(func(p *provider) {
			sends("/token", `{"access_token":"a","token_type":"bearer","expires_in":3600}`)(p, nil)
		})
		r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
		a := r.link(t, p, r.caller, "")
		if token, err := r.Authorizer(a.ID).Token(t.Context(), ""); err != nil || token.Access != "a" {
			t.Errorf("before it expires: %v", err)
		}
		r.expire(t, a.ID)
		if _, err := r.Authorizer(a.ID).Token(t.Context(), ""); core.CodeOf(err) != core.CodeLoginNeeded {
			t.Errorf("after it expired: %v", err)
		}
	})
}

// An app that refuses a fresh token may have a different authorization server now.
func TestALoginIsNeededAtTheAppsNewServer(t *testing.T) {
	p, next := newProvider(t), newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	a := r.link(t, p, r.caller, "")
	p.change(func(p *provider) { p.resource["authorization_servers"] = []string{"http://127.0.0.1:1", p.URL + "/"} })
	if _, err := r.Authorizer(a.ID).Token(t.Context(), a.Grant.AccessToken); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("the app still names the server: %v", err)
	}
	p.change(func(p *provider) { p.resource["authorization_servers"] = []string{"http://127.0.0.1:1"} })
	r.appServers.Purge() // a minute later
	if _, err := r.Authorizer(a.ID).Token(t.Context(), a.Grant.AccessToken); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("the other server is down: %v", err)
	}
	p.change(func(p *provider) { p.resource["authorization_servers"] = []string{next.URL} })
	if _, err := r.Authorizer(a.ID).Token(t.Context(), ""); err != nil {
		t.Errorf("a token must remain usable as long as the app accepts it: %v", err)
	}
	r.appServers.Purge()
	if _, err := r.Authorizer(a.ID).Token(t.Context(), a.Grant.AccessToken); core.CodeOf(err) != core.CodeLoginNeeded {
		t.Errorf("the app moved: %v", err)
	}
	if names := r.eventNames(); !slices.Contains(names, core.EventAccountLoginNeeded) {
		t.Errorf("events: %v", names)
	}
	if again := r.link(t, next, r.caller, ""); again.ID != a.ID || again.Issuer != next.URL || next.count("/register") != 1 {
		t.Errorf("linked again at %s", again.Issuer)
	}
}

// An app's previous authorization server may be gone by the time a token expires.
func TestALoginIsNeededAtTheAppsNewServerIfTheOldOneIsGone(t *testing.T) {
	p, next := newProvider(t), newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	a := r.link(t, p, r.caller, "")
	r.expire(t, a.ID)
	p.change(func(p *provider) {
		responds("/token", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })(p, nil)
	})
	if _, err := r.Authorizer(a.ID).Token(t.Context(), ""); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("the app still names the server: %v", err)
	}
	p.change(func(p *provider) { p.resource["authorization_servers"] = []string{next.URL} })
	r.appServers.Purge() // a minute later
	if _, err := r.Authorizer(a.ID).Token(t.Context(), ""); core.CodeOf(err) != core.CodeLoginNeeded {
		t.Errorf("the app moved: %v", err)
	}
}

func TestTokensAreBoundToAKeyIfTheAppRequiresIt(t *testing.T) {
	p := newProvider(t)
	var keys, nonces []string
	p.change(func(p *provider) {
		wantsProofs(p, nil)
		p.fail = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/token" {
				return false
			}
			parts := strings.Split(r.Header.Get("DPoP"), ".")
			var header struct{ JWK json.RawMessage }
			var claims struct{ Nonce, HTU string }
			for i, into := range []any{&header, &claims} {
				if data, err := base64.RawURLEncoding.DecodeString(parts[i]); err != nil || json.Unmarshal(data, into) != nil {
					refuse(w, "invalid_dpop_proof")
					return true
				}
			}
			if keys, nonces = append(keys, string(header.JWK)), append(nonces, claims.Nonce); claims.Nonce == "" {
				w.Header().Set("DPoP-Nonce", "n")
				refuse(w, "use_dpop_nonce")
				return true
			}
			p.bound = true
			return false
		}
	})
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	a := r.link(t, p, r.caller, "")
	r.expire(t, a.ID)
	token, err := r.Authorizer(a.ID).Token(t.Context(), "")
	if err != nil || token.Key == nil || token.Access == a.Grant.AccessToken {
		t.Errorf("%+v: %v", token.Key, err)
	}
	if !slices.Equal(nonces, []string{"", "n", "", "n"}) || len(slices.Compact(keys)) != 1 {
		t.Errorf("proofs with the nonces %q and %d keys", nonces, len(keys))
	}
}

func TestOnlyTheAuthorizationServerCanEndAGrant(t *testing.T) {
	for _, c := range []struct {
		name  string
		fail  func(w http.ResponseWriter)
		state core.AccountState
		code  core.Code
	}{
		{"503", func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, core.AccountActive, core.CodeUnavailable},
		{"401 from a proxy", func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }, core.AccountActive, core.CodeUnavailable},
		{"a page", func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) }, core.AccountActive, core.CodeUnavailable},
		{"an empty response", func(http.ResponseWriter) {}, core.AccountActive, core.CodeUnavailable},
		{"a broken connection", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, core.AccountActive, core.CodeUnavailable},
		{"temporarily_unavailable", func(w http.ResponseWriter) { refuse(w, "temporarily_unavailable") }, core.AccountActive, core.CodeUnavailable},
		{"invalid_client", func(w http.ResponseWriter) { refuse(w, "invalid_client") }, core.AccountActive, core.CodeUnavailable},
		{"invalid_grant", func(w http.ResponseWriter) { refuse(w, "invalid_grant") }, core.AccountLoginNeeded, core.CodeLoginNeeded},
		{"bad_refresh_token", func(w http.ResponseWriter) { _, _ = w.Write([]byte("error=bad_refresh_token")) }, core.AccountLoginNeeded, core.CodeLoginNeeded},
		{"interaction_required", func(w http.ResponseWriter) { refuse(w, "interaction_required") }, core.AccountLoginNeeded, core.CodeLoginNeeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProvider(t)
			r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
			a := r.link(t, p, r.caller, "")
			r.expire(t, a.ID)
			r.eventNames()
			p.change(func(p *provider) {
				p.fail = func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path == "/token" {
						c.fail(w)
						return true
					}
					return false
				}
			})
			_, err := r.Authorizer(a.ID).Token(t.Context(), "")
			if core.CodeOf(err) != c.code || strings.Contains(err.Error(), "secret-in-the-response") {
				t.Errorf("%v, want %s", err, c.code)
			}
			now, err := r.store.Account(t.Context(), a.ID)
			if err != nil || now.State != c.state || now.Grant.RefreshToken != a.Grant.RefreshToken {
				t.Errorf("the account is %s: %v", now.State, err)
			}
			if names := r.eventNames(); (c.state == core.AccountLoginNeeded) != slices.Equal(names, []string{core.EventAccountLoginNeeded}) {
				t.Errorf("events: %v", names)
			}
			p.change(func(p *provider) { p.fail = nil })
			_, err = r.Authorizer(a.ID).Token(t.Context(), "")
			if (err == nil) != (c.state == core.AccountActive) {
				t.Errorf("when the server is back: %v", err)
			}
		})
	}
}

func TestAGrantSurvivesALifetimeThatIsNotAWholeNumber(t *testing.T) {
	for life, seconds := range map[string]int{
		"3600": 3600, `"3600"`: 3600, "3599.5": 3599, `"3599.5"`: 3599, "3.6e3": 3600, "1e300": 1<<31 - 1,
		"0": 0, "-1": 0, `""`: 0, `"never"`: 0, `"NaN"`: 0, "null": 0, "{}": 0,
	} {
		p := newProvider(t)
		r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
		a := r.link(t, p, r.caller, "")
		r.expire(t, a.ID)
		p.change(func(p *provider) {
			sends("/token", `{"access_token":"next","refresh_token":"rotated","token_type":"bearer","scope":["a"],"expires_in":`+life+`}`)(p, nil)
		})
		if _, err := r.Authorizer(a.ID).Token(t.Context(), ""); err != nil {
			t.Errorf("%s: %v", life, err)
		}
		now, err := r.store.Account(t.Context(), a.ID)
		left := time.Until(now.ExpiresAt).Round(time.Minute)
		if err != nil || now.Grant.RefreshToken != "rotated" || now.ExpiresAt.IsZero() != (seconds == 0) || seconds > 0 && left != (time.Duration(seconds)*time.Second).Round(time.Minute) {
			t.Errorf("%s: %+v, %v left, %v", life, now, left, err)
		}
	}
}

// An authorization server shows an error to a browser that comes from an unknown client, and never redirects it back.
func TestAClientThatTheServerForgotIsRegisteredAgain(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	a := r.link(t, p, r.caller, "")
	r.expire(t, a.ID)
	p.change(func(p *provider) {
		responds("/token", func(w http.ResponseWriter, _ *http.Request) { refuse(w, "invalid_client") })(p, nil)
	})
	if _, err := r.Authorizer(a.ID).Token(t.Context(), ""); core.CodeOf(err) != core.CodeUnavailable {
		t.Error(err)
	}
	p.change(func(p *provider) { p.fail = nil })
	if again := r.link(t, p, r.caller, ""); again.ID != a.ID || p.count("/register") != 2 {
		t.Errorf("this server registered %d times", p.count("/register"))
	}
}

func refuse(w http.ResponseWriter, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write([]byte(`{"error":"` + code + `","error_description":"secret-in-the-response"}`))
}

func TestALoginThatEndedIsRenewedByLinkingAgain(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	a := r.link(t, p, r.caller, "work")
	r.expire(t, a.ID)
	p.change(func(p *provider) { clear(p.current) })
	if _, err := r.Authorizer(a.ID).Token(t.Context(), ""); core.CodeOf(err) != core.CodeLoginNeeded {
		t.Fatal(err)
	}
	_, err := r.Choose(t.Context(), r.caller, "far", core.AccountWanted{ReadOnly: true})
	if want, ok := asNeeded(err); !ok || want.Name != "work" || !strings.Contains(want.URL, "for="+r.caller.User.ID) {
		t.Errorf("a call returned %v", err)
	}
	if again := r.link(t, p, r.caller, "work"); again.ID != a.ID {
		t.Errorf("the account has another id: %s, %s", again.ID, a.ID)
	}
	if _, err := r.Choose(t.Context(), r.caller, "far", core.AccountWanted{ReadOnly: true}); err != nil {
		t.Error(err)
	}
}

func TestAnAccountIsUsedByItsOwnerOnly(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	work, home := r.link(t, p, r.caller, "work"), r.link(t, p, r.caller, "home")
	bob := r.person(t, "bob")
	key, keyWith := r.caller, r.caller
	key.Scope = core.Scope{Key: "key_1"}
	keyWith.Scope = core.Scope{Key: "key_2", Accounts: true}
	owner := core.Caller{Identity: core.Owner(), Workspace: core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleAdmin}}
	for _, c := range []struct {
		name     string
		caller   core.Caller
		account  string
		readOnly bool
		chosen   core.ChosenAccounts
		id       string
		code     core.Code
	}{
		{"the default, for a read-only call", r.caller, "", true, nil, work.ID, ""},
		{"a named one", r.caller, "home", false, nil, home.ID, ""},
		{"neither of two, for a call that writes", r.caller, "", false, nil, "", core.CodeBadRequest},
		{"one that does not exist", r.caller, "other", true, nil, "", core.CodeLoginNeeded},
		{"another person", bob, "work", true, nil, "", core.CodeLoginNeeded},
		{"a key without accounts", key, "work", true, nil, "", core.CodeForbidden},
		{"a key with accounts", keyWith, "work", true, nil, work.ID, ""},
		{"SERVICE_API_KEY", owner, "", true, nil, "", core.CodeForbidden},
		{"the conversation's, for a call that writes", r.caller, "", false, conversation(home.ID), home.ID, ""},
		{"the conversation's, for a read-only call", r.caller, "", true, conversation(home.ID), home.ID, ""},
		{"a different one from the conversation's", r.caller, "work", false, conversation(home.ID), work.ID, ""},
		{"the conversation's, unlinked, for a call that writes", r.caller, "", false, conversation("acc_gone"), "", core.CodeBadRequest},
	} {
		a, err := r.Choose(t.Context(), c.caller, "far", core.AccountWanted{Name: c.account, ReadOnly: c.readOnly, Chosen: c.chosen})
		if a.ID != c.id || err != nil && core.CodeOf(err) != c.code || err == nil && c.code != "" {
			t.Errorf("%s: %q, %v", c.name, a.ID, err)
		}
	}
	if _, err := r.Change(t.Context(), bob, work.ID, core.AccountChange{Default: true}); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("bob changed alice's account: %v", err)
	}
	name := "second"
	if _, err := r.Change(t.Context(), r.caller, home.ID, core.AccountChange{Name: &name, Default: true}); err != nil {
		t.Fatal(err)
	}
	if a, err := r.Choose(t.Context(), r.caller, "far", core.AccountWanted{ReadOnly: true}); err != nil || a.ID != home.ID || a.Name != "second" {
		t.Errorf("the new default: %+v, %v", a, err)
	}
	if name = "work"; true {
		if _, err := r.Change(t.Context(), r.caller, home.ID, core.AccountChange{Name: &name}); core.CodeOf(err) != core.CodeConflict {
			t.Errorf("two accounts got the same name: %v", err)
		}
	}
	admin := bob
	admin.Workspace.Role = core.RoleAdmin
	if all, err := r.List(t.Context(), admin); err != nil || len(all) != 2 {
		t.Errorf("an admin sees %d accounts: %v", len(all), err)
	}
	if err := r.Unlink(t.Context(), admin, work.ID); err != nil {
		t.Errorf("an admin could not unlink: %v", err)
	}
}

// conversation is the account that was chosen in a conversation.
type conversation string

// ChosenAccount implements core.ChosenAccounts.
func (c conversation) ChosenAccount(context.Context, string) (string, error) { return string(c), nil }

func TestASharedAccountIsLinkedByAnAdminAndUsedByAll(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthShared})
	if _, err := r.begin(t, r.caller, Want{App: "far"}, callback); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("a member linked the shared account: %v", err)
	}
	admin := r.person(t, "admin")
	admin.Workspace.Role = core.RoleAdmin
	a := r.link(t, p, admin, "")
	owner := core.Caller{Identity: core.Owner(), Workspace: core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleAdmin}}
	for _, c := range []core.Caller{r.caller, admin, owner} {
		if chosen, err := r.Choose(t.Context(), c, "far", core.AccountWanted{}); err != nil || chosen.ID != a.ID || chosen.Owner != "" {
			t.Errorf("%s uses %+v: %v", c.User.DisplayName, chosen, err)
		}
	}
	if err := r.Unlink(t.Context(), r.caller, a.ID); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("a member unlinked the shared account: %v", err)
	}
}

func TestAHangingServerDoesNotDelayOthers(t *testing.T) {
	hung, fine := newProvider(t), newProvider(t)
	s := newStore(t)
	r := rigOn(t, s, hung, core.RemoteAuth{Type: core.AuthUser})
	release := make(chan struct{})
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer close(release)
	var expired []string
	for i := range maxRenewals {
		a := r.link(t, hung, r.caller, "hung"+strconv.Itoa(i))
		r.expire(t, a.ID)
		expired = append(expired, a.ID)
	}
	hung.change(func(p *provider) {
		p.fail = func(http.ResponseWriter, *http.Request) bool {
			<-release
			return true
		}
	})
	for _, id := range expired {
		waiting.Go(func() { _, _ = r.Authorizer(id).Token(t.Context(), "") })
	}
	testkit.Eventually(t, "the server that hangs has all the renewals that it may have", func() bool { return len(r.renewing.total) == maxRenewalsEach })
	// While the renewals wait, the state can be written, and the tokens of other accounts are renewed.
	if err := s.AddInstallation(t.Context(), core.Installation{
		ID: "other", Workspace: core.DefaultWorkspaceID, Name: "near", InstalledAt: time.Now(),
		Remote: &core.Remote{URL: fine.URL + "/mcp", Type: "streamable-http", Auth: core.RemoteAuth{Type: core.AuthUser}, AllowPrivate: true},
	}); err != nil {
		t.Fatal(err)
	}
	start, err := r.begin(t, r.caller, Want{App: "near"}, callback)
	if err != nil {
		t.Fatal(err)
	}
	response := fine.consent(t, start.URL)
	response.Binding = start.Binding
	a, _, err := r.Finish(t.Context(), as(r.caller), response)
	if err != nil {
		t.Fatal(err)
	}
	r.expire(t, a.ID)
	if token, err := r.Authorizer(a.ID).Token(t.Context(), ""); err != nil || token.Access == a.Grant.AccessToken {
		t.Error(err)
	}
}

func TestAnAppThatRefusesEveryTokenIsAskedOnceForItsServer(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	a := r.link(t, p, r.caller, "")
	before := p.count("/mcp")
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			if _, err := r.Authorizer(a.ID).Token(t.Context(), a.Grant.AccessToken); core.CodeOf(err) != core.CodeUnavailable {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if n := p.count("/mcp") - before; n != 1 {
		t.Errorf("%d discoveries for 50 calls", n)
	}
}
