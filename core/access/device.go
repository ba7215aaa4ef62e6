package access

import (
	"context"
	"crypto/rand"
	"net/netip"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins"
)

// Device is a computer whose command line asks for a login (RFC 8628). A person logs in with a browser, on that
// computer or on another, and consents. This makes the token that the command line already holds valid.
type Device struct {
	Name     string // the name it gives itself
	Address  string // the address that the request came from
	Redirect string // where the command line listens for the browser (RFC 8252 section 7.3); "" if it polls
	Code     string // the code that the person compares, such as "WDJB-MJHT"
	Token    string // the login's token; with Redirect only its first part, because the browser brings the rest
	Expires  time.Time
}

// consent is a login for a device that the person has not agreed to yet.
type consent struct {
	Device   Device
	Identity core.Identity
	Provider string
	Rest     string // the second part of the token
	Renewal  string // sealed with the text that only the consent page has
}

const (
	codeLetters = "BCDFGHJKLMNPQRSTVWXZ" // no vowels, so that codes do not form words (RFC 8628 section 6.1)
	codeLength  = 8
	maxDevice   = 100 // characters of a name
	maxRedirect = 500 // bytes of a redirect address; short, because anybody can have one stored without a login
)

func newCode() string {
	var code strings.Builder
	for code.Len() < codeLength+1 {
		if code.Len() == codeLength/2 {
			code.WriteByte('-')
		}
		b := make([]byte, 1)
		_, _ = rand.Read(b)                                    // never fails
		if int(b[0]) < 256/len(codeLetters)*len(codeLetters) { // makes all letters equally likely
			code.WriteByte(codeLetters[int(b[0])%len(codeLetters)])
		}
	}
	return code.String()
}

// deviceKey returns the key under which the device with a code is pending, however the person typed the code.
func deviceKey(code string) string {
	return "device " + strings.Map(func(r rune) rune {
		if !strings.ContainsRune(codeLetters, r) {
			return -1
		}
		return r
	}, strings.ToUpper(code))
}

// AskForLogin creates a token and a code for a device that asks for a login. The errors are core.CodeNotConfigured if
// no adapter supports logins, and core.CodeBadRequest for an invalid name or redirect address.
func (a *Access) AskForLogin(ctx context.Context, d Device) (Device, error) {
	if _, err := a.gate.Load().loginProviders(ctx); err != nil {
		return Device{}, err
	}
	switch {
	case strings.TrimSpace(d.Name) == "" || utf8.RuneCountInString(d.Name) > maxDevice:
		return Device{}, core.Errorf(core.CodeBadRequest, "name must have between 1 and %d characters", maxDevice)
	case d.Redirect != "" && (len(d.Redirect) > maxRedirect || !loopbackURL(d.Redirect)):
		return Device{}, core.Errorf(core.CodeBadRequest, "redirectUri must be an address of this computer, such as http://127.0.0.1:8000/done")
	}
	if err := core.CheckText("name", d.Name); err != nil {
		return Device{}, err
	}
	d.Code, d.Token, d.Expires = newCode(), secret(), time.Now().Add(pendingLife).Truncate(time.Second)
	return d, a.pending.put(ctx, deviceKey(d.Code), d.Address, d, d.Expires)
}

// loopbackURL reports whether an address belongs to a program on the same computer as the browser.
func loopbackURL(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return false
	}
	to, err := netip.ParseAddrPort(u.Host)
	return err == nil && to.Addr().IsLoopback() && to.Port() != 0 && to.Addr().Zone() == "" && !to.Addr().Is4In6()
}

// device returns the device with the given code. The device stays pending, because a person may open the page more than
// once.
func (a *Access) device(ctx context.Context, code string) (*Device, error) {
	d, err := take[Device](ctx, a.pending, deviceKey(code))
	if core.CodeOf(err) == core.CodeUnauthenticated {
		return nil, core.Errorf(core.CodeNotFound, "this code is unknown, used or expired; run `ropewalk login` again")
	}
	if err != nil {
		return nil, err
	}
	return &d, a.pending.put(ctx, deviceKey(code), d.Address, d, d.Expires)
}

// consentKey returns the key of a pending consent. No state of a login and no key of a device begins like it, so that
// none of them can be used as another, or used up.
func consentKey(text string) string { return "consent " + text }

// askConsent keeps a login for a device until the person agrees. Only the consent page gets the returned text.
func (a *Access) askConsent(ctx context.Context, client string, done Finished, id core.Identity, renewal plugins.Secret) (string, error) {
	text := secret()
	sealed, err := sealRenewal(text, renewal)
	if err != nil {
		return "", unavailable(err)
	}
	c := consent{Device: done.Device, Identity: id, Provider: done.Provider, Renewal: sealed}
	if c.Device.Redirect != "" {
		c.Rest = secret()
	}
	return text, a.pending.put(ctx, consentKey(text), client, c, done.Device.Expires)
}

// AnswerDevice completes a login for a device. If allow is true, the device is logged in as the person who consented.
// Either way, the device's code is used up. continueAt is where to send the browser, or "" to leave it on the page. The
// error is core.CodeUnauthenticated for a consent that is unknown, used or expired.
func (a *Access) AnswerDevice(ctx context.Context, text string, allow bool) (done Finished, continueAt string, err error) {
	c, err := take[consent](ctx, a.pending, consentKey(text))
	if err != nil {
		return done, "", err
	}
	done = Finished{Device: c.Device, Provider: c.Provider, User: c.Identity.User}
	if _, err := take[Device](ctx, a.pending, deviceKey(c.Device.Code)); err != nil {
		return done, "", err
	}
	answer := url.Values{"error": {"access_denied"}}
	if allow {
		renewal, err := openRenewal(text, c.Renewal)
		if err != nil {
			return done, "", unavailable(err)
		}
		if _, err := a.newLogin(ctx, c.Device.Token+c.Rest, c.Identity, a.gate.Load().key.print(), renewal); err != nil {
			return done, "", err
		}
		answer = url.Values{"code": {c.Rest}}
	}
	if c.Device.Redirect != "" {
		continueAt = c.Device.Redirect + "?" + answer.Encode()
	}
	return done, continueAt, nil
}
