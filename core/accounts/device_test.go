package accounts

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// givesCodes gives a provider a device endpoint. For a device code, its token endpoint responds with the next of the
// errors, and with tokens once there are none left.
func givesCodes(p *provider, errors ...string) {
	p.metadata["device_authorization_endpoint"] = p.URL + "/device"
	p.fail = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/device":
			_, _ = w.Write([]byte(`{"device_code":"secret-code","user_code":"WDJB-MJHT","verification_uri":"` + p.URL + `/enter","expires_in":120,"interval":5}`))
		case r.URL.Path != "/token" || r.PostForm.Get("grant_type") != deviceGrant:
			w.Header().Del("Content-Type")
			return false
		case len(errors) > 0:
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"` + errors[0] + `"}`))
			errors = errors[1:]
		case r.PostForm.Get("device_code") != "secret-code" || r.PostForm.Get("resource") != p.URL+"/mcp":
			w.WriteHeader(http.StatusBadRequest)
		default:
			_, _ = w.Write([]byte(`{"access_token":"access-of-device","refresh_token":"refresh-of-device","token_type":"bearer","expires_in":3600}`))
		}
		return true
	}
}

// beginDevice begins a login with a code for a person who agrees to what is shown.
func (r *rig) beginDevice(t *testing.T, c core.Caller, w Want) (Device, error) {
	t.Helper()
	consent, err := r.Prepare(t.Context(), c, w)
	if err != nil {
		return Device{}, err
	}
	w.Agreed = consent.Digest()
	return r.BeginDevice(t.Context(), c, w)
}

// withCode returns a rig in which the caller has begun a login with a code from p.
func withCode(t *testing.T, p *provider) (*rig, Device) {
	t.Helper()
	givesCodes(p)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	d, err := r.beginDevice(t, r.caller, Want{App: "far"})
	if err != nil {
		t.Fatal(err)
	}
	return r, d
}

func TestAnAccountIsLinkedWithACodeThatItsUserEnters(t *testing.T) {
	for _, c := range []struct {
		name   string
		errors []string
		after  time.Duration // when the account is linked; 0 for never
		code   core.Code     // the code of the error otherwise
	}{
		{name: "at once", after: 5 * time.Second},
		{name: "a little later", errors: []string{"authorization_pending", "authorization_pending"}, after: 15 * time.Second},
		{name: "at a server that wants to be polled less often", errors: []string{"slow_down", "authorization_pending", "slow_down"}, after: (5 + 10 + 10 + 15) * time.Second},
		{name: "while the server is busy", errors: []string{"temporarily_unavailable", "server_error"}, after: 15 * time.Second},
		{name: "not at all", errors: slices.Repeat([]string{"authorization_pending"}, 100), code: core.CodeForbidden},
		{name: "declining", errors: []string{"authorization_pending", "access_denied"}, code: core.CodeForbidden},
		{name: "after the server's own deadline", errors: []string{"expired_token"}, code: core.CodeForbidden},
		{name: "at a server that forgets the code", errors: []string{"invalid_grant"}, code: core.CodeUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := idleProvider("http://127.0.0.1:2")
				givesCodes(p, c.errors...)
				r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
				r.private.Transport = &direct{provider: p}
				d, err := r.beginDevice(t, r.caller, Want{App: "far"})
				if err != nil || d.Code != "WDJB-MJHT" || d.URL != p.URL+"/enter" || d.Interval != 5*time.Second || time.Until(d.Expires) != 2*time.Minute {
					t.Fatalf("%+v: %v", d, err)
				}
				began := time.Now()
				var a core.Account
				for wait := d.Interval; wait > 0 && err == nil; {
					if _, again, err := r.FinishDevice(t.Context(), r.caller, d.Login); err != nil || again != wait { // too early
						t.Fatalf("asked too early: wait %v: %v, want %v", again, err, wait)
					}
					time.Sleep(wait) //nolint:forbidigo // of the bubble
					a, wait, err = r.FinishDevice(t.Context(), r.caller, d.Login)
				}
				all, _ := r.store.Accounts(t.Context(), core.DefaultWorkspaceID)
				if c.after == 0 {
					if core.CodeOf(err) != c.code || len(all) > 0 {
						t.Errorf("linked %v: %v", all, err)
					}
				} else if err != nil || time.Since(began) != c.after || len(all) != 1 || all[0].ID != a.ID || all[0].Owner != r.caller.User.ID {
					t.Errorf("after %v: %+v: %v", time.Since(began), all, err)
				}
				if _, _, err := r.FinishDevice(t.Context(), r.caller, d.Login); core.CodeOf(err) != core.CodeForbidden {
					t.Errorf("finished again: %v", err)
				}
			})
		})
	}
}

func TestALoginWithACodeSurvivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := idleProvider("http://127.0.0.1:2")
		givesCodes(p)
		network := &direct{provider: p}
		r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
		r.private.Transport = network
		d, err := r.beginDevice(t, r.caller, Want{App: "far"})
		if err != nil {
			t.Fatal(err)
		}
		for _, down := range []func(*http.Request) (*http.Response, error){
			func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
			func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusBadGateway, Body: http.NoBody, Header: http.Header{}}, nil
			},
			nil,
		} {
			network.down = down
			time.Sleep(d.Interval) //nolint:forbidigo // of the bubble
			a, wait, err := r.FinishDevice(t.Context(), r.caller, d.Login)
			if err != nil || (down == nil) != (wait == 0 && a.State == core.AccountActive) {
				t.Errorf("%+v, %v: %v", a, wait, err)
			}
		}
	})
}

// Each case changes one detail of a login that would otherwise succeed.
func TestAMismatchedCodeLoginIsRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(r *rig, c *core.Caller, login *string)
		code   core.Code
	}{
		{"another person", func(r *rig, c *core.Caller, _ *string) { *c = r.person(t, "mallory") }, core.CodeForbidden},
		{"another workspace", func(_ *rig, c *core.Caller, _ *string) { c.Workspace.ID = "ws_other" }, core.CodeForbidden},
		{"an API key", func(_ *rig, c *core.Caller, _ *string) { c.Scope = core.Scope{Key: "key_1", Accounts: true} }, core.CodeForbidden},
		{"another login", func(_ *rig, _ *core.Caller, login *string) { *login += "x" }, core.CodeForbidden},
		{"an app that is gone", func(r *rig, _ *core.Caller, _ *string) {
			_ = r.store.DeleteInstallation(t.Context(), core.DefaultWorkspaceID, "far", "first")
		}, core.CodeConflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProvider(t)
			r, d := withCode(t, p)
			caller, login := r.caller, d.Login
			c.change(r, &caller, &login)
			if _, _, err := r.FinishDevice(t.Context(), caller, login); core.CodeOf(err) != c.code {
				t.Errorf("%v, want %s", err, c.code)
			}
			if n := p.count("/token " + deviceGrant); n > 0 {
				t.Errorf("the server got %d token requests", n)
			}
		})
	}
	t.Run("a browser with the login as its state", func(t *testing.T) {
		p := newProvider(t)
		r, d := withCode(t, p)
		if _, _, err := r.Finish(t.Context(), as(r.caller), Response{State: d.Login, Code: "code", Issuer: p.URL}); core.CodeOf(err) != core.CodeForbidden {
			t.Errorf("finished: %v", err)
		}
	})
}

func TestNoCodeIsRequestedUnlessAUserHasAgreed(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	if _, err := r.beginDevice(t, r.caller, Want{App: "far"}); core.CodeOf(err) != core.CodeBadRequest {
		t.Errorf("a server without a device endpoint: %v", err)
	}
	p.change(func(p *provider) { givesCodes(p) })
	if _, err := r.BeginDevice(t.Context(), r.caller, Want{App: "far"}); core.CodeOf(err) != core.CodeConflict {
		t.Errorf("a person who has not agreed: %v", err)
	}
	key := r.caller
	key.Scope = core.Scope{Key: "key_1", Accounts: true}
	if _, err := r.beginDevice(t, key, Want{App: "far"}); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("an API key: %v", err)
	}
	if n := p.count("/device"); n > 0 {
		t.Errorf("the server got %d device code requests", n)
	}
}

func TestAnInvalidDeviceCodeResponseIsRefused(t *testing.T) {
	const rest = `"device_code":"c","user_code":"u","verification_uri":`
	for answer, change := range map[string]func(p, evil *provider){
		`{` + rest + `"javascript:alert(1)"}`:                  nil,
		`{` + rest + `"https://a:b@idp.example"}`:              nil,
		`{"user_code":"u","verification_uri":"https://a.a"}`:   nil,
		`{"device_code":"c","verification_uri":"https://a.a"}`: nil,
		`{` + rest + `"https://a.a","error":"invalid_client"}`: nil,
		`<html>`:                      nil,
		"a device endpoint in a file": describes("device_authorization_endpoint", "file:///etc/passwd"),
		"a device endpoint at a cloud's metadata address": describes("device_authorization_endpoint", "http://169.254.169.254/latest/meta-data"),
	} {
		p, evil := newProvider(t), newProvider(t)
		givesCodes(p)
		if change == nil {
			change = sends("/device", answer)
		}
		change(p, evil)
		r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
		if d, err := r.beginDevice(t, r.caller, Want{App: "far"}); core.CodeOf(err) != core.CodeUnavailable {
			t.Errorf("%s: %+v: %v", answer, d, err)
		}
	}
}

func TestScopesThatADeviceEndpointRefusesAreOmitted(t *testing.T) {
	p := newProvider(t)
	givesCodes(p)
	answers := p.fail
	p.fail = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/device" && r.PostForm.Has("scope") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"invalid_scope"}`))
			return true
		}
		return answers(w, r)
	}
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	if d, err := r.beginDevice(t, r.caller, Want{App: "far"}); err != nil || d.Code == "" {
		t.Errorf("the app's scopes: %+v: %v", d, err)
	}
	if _, err := r.beginDevice(t, r.caller, Want{App: "far", Scopes: []string{"admin"}}); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("the scopes of a call: %v", err)
	}
}

// The app's own client has a single grant for a person, which the login replaces.
func TestAReplacedLoginIsRevokedBeforeTheCodeIsEntered(t *testing.T) {
	p := newProvider(t)
	auth := core.RemoteAuth{Type: core.AuthUser, ClientID: "by-hand", ClientSecret: "a secret"}
	p.metadata["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"}
	r := newRig(t, p, auth)
	before := r.link(t, p, r.caller, "")
	var sent string
	p.change(func(p *provider) {
		givesCodes(p)
		answers := p.fail
		p.fail = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/device" {
				sent = r.PostForm.Get("client_id") + " " + r.PostForm.Get("client_secret")
			}
			return answers(w, r)
		}
	})
	if _, err := r.beginDevice(t, r.caller, Want{App: "far"}); err != nil {
		t.Fatal(err)
	}
	if sent != "by-hand a secret" {
		t.Errorf("the server received the request as %q", sent)
	}
	old, err := r.store.Account(t.Context(), before.ID)
	if err != nil || !slices.Contains(p.revoked, old.Grant.RefreshToken.Reveal()) || strings.Contains(strings.Join(p.requests, " "), "/register") {
		t.Errorf("revoked %v after %v: %v", p.revoked, p.requests, err)
	}
}
