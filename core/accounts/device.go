package accounts

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

const (
	deviceGrant       = "urn:ietf:params:oauth:grant-type:device_code"
	deviceInterval    = 5 * time.Second // between two requests, and what slow_down adds (RFC 8628)
	maxDeviceInterval = time.Minute
)

// Device is a login in progress that a person completes with a code, in a browser on any device (RFC 8628).
type Device struct {
	Login    string // a secret: pass it to FinishDevice
	URL      string // the page that takes the code
	Complete string // the same page with the code in it; "" if the server has none
	Code     string
	Interval time.Duration // how long to wait before the first FinishDevice
	Expires  time.Time
}

// deviceCode holds the data of a pending login with a code.
type deviceCode struct {
	Code     string
	Interval time.Duration
	Next     time.Time // when the authorization server may be polled again
	Expires  time.Time
}

// BeginDevice starts to link an account after c has agreed to it, without a browser on this device: the person enters a
// code at the authorization server. FinishDevice completes it. The person who enters the code decides which account is
// linked, so API keys, which may be stolen, cannot start a login.
func (m *Manager) BeginDevice(ctx context.Context, c core.Caller, w Want) (Device, error) {
	if c.Scope.Key != "" {
		return Device{}, core.Errorf(core.CodeForbidden, "an API key cannot link accounts with a code: run ropewalk login, or open the page in a browser")
	}
	in, s, consent, err := m.agreed(ctx, c, w)
	if err != nil {
		return Device{}, err
	}
	if !consent.Device {
		return Device{}, core.Errorf(core.CodeBadRequest, "%s does not support logins with a code (RFC 8628): open the page in a browser, which may be on another device", hostOf(s.Issuer))
	}
	p, err := m.newPending(ctx, c, w, in, s, consent, "")
	if err != nil {
		return Device{}, err
	}
	d, code, err := m.requestCode(ctx, &p, s.Device)
	if err != nil {
		return Device{}, err
	}
	m.revokeReplaced(ctx, p)
	d.Login = secret()
	p.Device = deviceCode{Code: code.Reveal(), Interval: d.Interval, Next: time.Now().Add(d.Interval), Expires: d.Expires}
	return d, m.putLogin(ctx, deviceKey(d.Login), p, d.Expires)
}

// requestCode requests a code from an authorization server. If the server rejects optional scopes, requestCode tries
// again with fewer.
func (m *Manager) requestCode(ctx context.Context, p *pending, endpoint string) (d Device, code core.Secret, err error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeWithin)
	defer cancel()
	form := url.Values{"resource": {p.Resource}}
	if len(p.Scopes) > 0 {
		form.Set("scope", strings.Join(p.Scopes, " "))
	}
	status, content, err := m.postForm(ctx, p.grant(), endpoint, form)
	if err != nil {
		return d, "", core.Wrap(core.CodeUnavailable, err, err.Error())
	}
	var body struct {
		Device   string  `json:"device_code"`
		User     string  `json:"user_code"`
		URL      string  `json:"verification_uri"`
		Complete string  `json:"verification_uri_complete"`
		Expires  float64 `json:"expires_in"`
		Interval float64 `json:"interval"`
		Error    string  `json:"error"`
	}
	malformed := json.Unmarshal(content, &body) != nil
	switch {
	case body.Error == "invalid_scope" && p.ScopesOptional && len(p.Scopes) > 0:
		p.Scopes = fewerScopes(p.Scopes)
		return m.requestCode(ctx, p, endpoint)
	case status != http.StatusOK || body.Error != "":
		return d, "", core.Errorf(core.CodeUnavailable, "%s did not issue a code: it returned %d %.100q. Open the page in a browser instead", hostOf(p.Issuer), status, body.Error)
	case malformed || body.Device == "" || body.User == "" || len(body.User) > 100 || checkEndpoint("verification_uri", body.URL, p.Private) != nil:
		return d, "", core.Errorf(core.CodeUnavailable, "%s did not issue a code: its response is not valid (RFC 8628). Open the page in a browser instead", hostOf(p.Issuer))
	}
	d = Device{
		URL: body.URL, Code: body.User, Interval: within(body.Interval, deviceInterval, maxDeviceInterval),
		Expires: time.Now().Add(within(body.Expires, pendingLife, pendingLife)),
	}
	if checkEndpoint("verification_uri_complete", body.Complete, p.Private) == nil {
		d.Complete = body.Complete
	}
	return d, core.Secret(body.Device), nil
}

// within returns a number of seconds as a duration of at most limit, or def if it is not positive.
func within(seconds float64, def, limit time.Duration) time.Duration {
	if seconds <= 0 {
		return def
	}
	return time.Duration(min(seconds, limit.Seconds()) * float64(time.Second))
}

// FinishDevice completes a login with a code for the person who started it. While the person has not entered the code,
// it returns how long to wait before the next call. The error is core.CodeForbidden if the person declines, does not
// enter the code in time, or may no longer link the account.
func (m *Manager) FinishDevice(ctx context.Context, c core.Caller, login string) (a core.Account, wait time.Duration, err error) {
	key := deviceKey(login)
	p, err := m.takeLogin(ctx, key)
	switch {
	case err != nil:
		return a, 0, err
	case p.By != c.User.ID || p.Workspace != c.Workspace.ID || c.Scope.Key != "":
		return a, 0, core.Errorf(core.CodeForbidden, "somebody else started this login")
	}
	if err := m.mayComplete(ctx, c, p); err != nil {
		return a, 0, err
	}
	ctx = context.WithoutCancel(ctx) // takeLogin has removed the stored login, so continue even if the request is cancelled
	if wait = time.Until(p.Device.Next); wait > 0 {
		return a, wait, m.putLogin(ctx, key, p, p.Device.Expires)
	}
	limit, cancel := context.WithTimeout(ctx, exchangeWithin)
	defer cancel()
	token, err := m.exchange(limit, p.grant(), url.Values{"grant_type": {deviceGrant}, "device_code": {p.Device.Code}})
	switch code := codeOf(err); code {
	case "slow_down":
		p.Device.Interval = min(p.Device.Interval+deviceInterval, maxDeviceInterval)
	case "authorization_pending":
	case "access_denied":
		return a, 0, core.Errorf(core.CodeForbidden, "the login was declined at %s", hostOf(p.Issuer))
	case "expired_token":
		return a, 0, core.Errorf(core.CodeForbidden, "nobody entered the code in time. Start again")
	case "":
		if err == nil {
			a, err = m.keep(ctx, p, token)
			return a, 0, err
		}
		m.log.Debug("could not poll the authorization server for a login with a code; retrying", "app", p.App, "reason", describe(p.Issuer, err))
	default:
		return a, 0, core.Errorf(core.CodeUnavailable, "the account was not linked: %s", describe(p.Issuer, err))
	}
	p.Device.Next = time.Now().Add(p.Device.Interval)
	return a, p.Device.Interval, m.putLogin(ctx, key, p, p.Device.Expires)
}

// deviceKey returns the key under which a login with a code is stored. Its prefix distinguishes it from the states that
// browsers return.
func deviceKey(login string) string { return hashOf(strings.Join([]string{"device", login}, "\x00")) }
