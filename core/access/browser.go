package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// LoginRequest describes a browser login to start.
type LoginRequest struct {
	Provider    string // the provider's name; "" for the first
	RedirectURI string // where the provider sends the browser; its own settings take precedence
	ReturnTo    string // the local path to continue at; anything that is not a local path becomes "/"
	Device      string // the code of a device that asked for a login; "" if the browser itself logs in
	Client      string // the address of the browser
}

// LoginStart is a pending browser login.
type LoginStart struct {
	URL     string // where to redirect the browser
	Binding string // for a short-lived HttpOnly cookie; pass it to FinishLogin
}

// LoginAnswer is the identity provider's response, as the browser brought it back.
type LoginAnswer struct {
	State   string
	Code    string
	Issuer  string // the iss parameter (RFC 9207), "" if there was none
	Binding string
	Client  string // the address of the browser
}

// pendingLogin is a browser login in progress. Nonce and Verifier never leave the server, except for the store that
// several servers share.
type pendingLogin struct {
	provider    *trusted // the provider that it started with; nil if it may have started on a peer server
	Issuer      string   // the issuer of the provider it started with
	Nonce       string
	Verifier    string
	RedirectURI string
	ReturnTo    string
	Binding     fingerprint
	Device      *Device // set if the login is for a command line; nil if it is for the browser
}

// of reports whether the login started with the given provider.
func (l pendingLogin) of(p *trusted, about auth.Description) bool {
	return l.Issuer == about.Issuer && (l.provider == nil || l.provider.Adapter == p.Adapter)
}

// LoginProviders returns the names of the providers that browsers can log in with.
func (a *Access) LoginProviders(ctx context.Context) ([]string, error) {
	all, err := a.gate.Load().loginProviders(ctx)
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.Name
	}
	return names, err
}

// BeginLogin starts a browser login (authorization code with PKCE, RFC 7636). The errors are core.CodeNotConfigured if
// no adapter supports logins, core.CodeBadRequest for an unknown provider, core.CodeNotFound for an unknown device, and
// core.CodeUnavailable if the provider or the store fails.
func (a *Access) BeginLogin(ctx context.Context, r LoginRequest) (LoginStart, error) {
	all, err := a.gate.Load().loginProviders(ctx)
	if err != nil {
		return LoginStart{}, err
	}
	i := slices.IndexFunc(all, func(p loginProvider) bool { return r.Provider == "" || p.Name == r.Provider })
	if i < 0 {
		return LoginStart{}, core.Errorf(core.CodeBadRequest, "there is no such provider; omit provider for a list")
	}
	provider := all[i]
	if !core.LocalPath(r.ReturnTo) {
		r.ReturnTo = "/"
	}
	binding, state := secret(), secret()
	login := pendingLogin{
		provider: provider.trusted, Issuer: provider.about.Issuer, Nonce: secret(), Verifier: secret(),
		RedirectURI: cmp.Or(provider.RedirectURI, r.RedirectURI), ReturnTo: r.ReturnTo, Binding: fingerprintOf(binding),
	}
	if r.Device != "" {
		if login.Device, err = a.device(ctx, r.Device); err != nil {
			return LoginStart{}, err
		}
	}
	challenge := sha256.Sum256([]byte(login.Verifier))
	url, err := provider.login.AuthorizeURL(ctx, auth.AuthorizeRequest{
		RedirectURI: login.RedirectURI, State: state, Nonce: login.Nonce,
		CodeChallenge: base64.RawURLEncoding.EncodeToString(challenge[:]),
	})
	if err != nil {
		a.log.Warn("browser login not started", "error", err)
		return LoginStart{}, loginFailed(err)
	}
	if err := a.pending.put(ctx, state, r.Client, login, time.Now().Add(pendingLife)); err != nil {
		return LoginStart{}, err
	}
	return LoginStart{URL: url, Binding: binding}, nil
}

// Finished is the outcome of a browser login. If the login failed, only Provider is set, if it is known.
type Finished struct {
	Token    string // for the cookie; "" if the login is for a device
	Device   Device // the device that asked for the login
	Consent  string // for AnswerDevice, if the login is for a device: identifies the pending consent
	ReturnTo string // the path to continue at
	Provider string // the name of the provider
	User     core.User
}

// FinishLogin completes a browser login. The error is core.CodeUnauthenticated for a state that is unknown, used,
// expired, from another browser, or older than the current adapter, for a response from another provider, and for a
// code that the provider rejects. The wrapped cause, which is only for the log, says which.
func (a *Access) FinishLogin(ctx context.Context, answer LoginAnswer) (done Finished, err error) {
	g := a.gate.Load()
	all, err := g.loginProviders(ctx)
	if err != nil {
		return done, err
	}
	if strings.ContainsAny(answer.State, " \x00") { // the key of another step, such as a device
		return done, refusedLogin("the state is not one of this server's")
	}
	login, err := take[pendingLogin](ctx, a.pending, answer.State)
	if err != nil {
		return done, err
	}
	binding := fingerprintOf(answer.Binding)
	i := slices.IndexFunc(all, func(p loginProvider) bool { return login.of(p.trusted, p.about) })
	if i < 0 {
		return done, refusedLogin("the auth adapter was replaced after the login started")
	}
	provider := all[i]
	done.Provider, done.ReturnTo = provider.Name, login.ReturnTo
	switch {
	case answer.Code == "":
		return done, refusedLogin("the identity provider did not send a code")
	case subtle.ConstantTimeCompare(binding[:], login.Binding[:]) != 1:
		return done, refusedLogin("the login started in another browser, or the browser did not send the login cookie")
	}
	began := time.Now()
	verified, err := provider.exchange(ctx, login, answer)
	var id core.Identity
	if err == nil {
		id, err = a.admit(ctx, provider.trusted, verified)
		id.Since = began
	}
	if err != nil {
		return done, loginFailed(err)
	}
	if !a.gate.Load().has(provider.trusted) {
		return done, refusedLogin("the auth adapter was replaced during the login")
	}
	done.User = id.User
	if login.Device != nil {
		done.Device = *login.Device
		done.Consent, err = a.askConsent(ctx, answer.Client, done, id, verified.Renewal)
		return done, err
	}
	done.Token, err = a.newLogin(ctx, secret(), id, g.key.print(), verified.Renewal)
	return done, err
}

// loginProvider is a provider that browsers can log in with.
type loginProvider struct {
	*trusted
	login auth.Login
	about auth.Description
}

// exchange asks the provider to exchange the response's code for an identity. The response must have come from that
// provider.
func (p loginProvider) exchange(ctx context.Context, login pendingLogin, answer LoginAnswer) (auth.Identity, error) {
	if err := p.checkIssuer(ctx, answer.Issuer); err != nil {
		return auth.Identity{}, err
	}
	verified, err := guarded(func() (auth.Identity, error) {
		return p.login.Exchange(ctx, auth.ExchangeRequest{
			RedirectURI: login.RedirectURI, Code: answer.Code, Nonce: login.Nonce, CodeVerifier: login.Verifier,
		})
	})
	if err == nil && verified.Issuer != p.about.Issuer {
		err = fmt.Errorf("the provider %q logged in a user from another issuer: %w", p.Name, plugins.ErrUnauthenticated)
	}
	return verified, err
}

// checkIssuer returns an error if the issuer in a response shows that another provider sent it (RFC 9207 section 2.4).
// Without this check, the code could be sent to a provider that did not issue it. A response without an issuer is
// accepted if the provider's metadata does not announce the iss parameter.
func (p loginProvider) checkIssuer(ctx context.Context, stated string) error {
	if stated == p.about.Issuer {
		return nil
	}
	document, err := p.Adapter.Metadata(ctx)
	if err != nil && !errors.Is(err, plugins.ErrNotFound) && !errors.Is(err, plugins.ErrUnimplemented) {
		return err
	}
	var metadata struct {
		Issuer string `json:"issuer"`
		States bool   `json:"authorization_response_iss_parameter_supported"`
	}
	if err == nil {
		if err := json.Unmarshal(document, &metadata); err != nil {
			return fmt.Errorf("the metadata of the provider %q cannot be read: %w", p.Name, err)
		}
	}
	switch {
	case stated == "" && metadata.States:
		return fmt.Errorf("the response has no issuer (iss), although the provider %q announces one: %w", p.Name, plugins.ErrUnauthenticated)
	case stated == "", stated == metadata.Issuer:
		return nil
	}
	return fmt.Errorf("the response did not come from the provider %q, where the login started: it has a different issuer (iss): %w", p.Name, plugins.ErrUnauthenticated)
}

// loginProviders returns the providers that support logins and are configured for them, or core.CodeNotConfigured if
// there are none.
func (g *gate) loginProviders(ctx context.Context) ([]loginProvider, error) {
	var all []loginProvider
	var failed error
	for _, p := range g.providers {
		login, can := p.Adapter.(auth.Login)
		if !can {
			continue
		}
		about, err := p.describe(ctx)
		switch {
		case err != nil:
			failed = err
		case about.Login:
			all = append(all, loginProvider{p, login, about})
		}
	}
	switch {
	case len(all) > 0:
		return all, nil
	case failed != nil:
		return nil, failed
	}
	return nil, notConfigured()
}

// OffersBrowserLogin reports whether a browser login can be started. The result is true while a provider that may
// support logins is unavailable. The check takes at most a second.
func (a *Access) OffersBrowserLogin(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := a.gate.Load().loginProviders(ctx)
	return core.CodeOf(err) != core.CodeNotConfigured
}

func notConfigured() error {
	return core.Errorf(core.CodeNotConfigured, "browser login is not configured; set auth.adapter to one that supports it, with clientId and redirectUri")
}

func loginFailed(err error) error {
	switch {
	case errors.Is(err, plugins.ErrUnauthenticated):
		return core.Wrap(core.CodeUnauthenticated, err, "authorization required")
	case errors.Is(err, plugins.ErrUnimplemented):
		return notConfigured()
	}
	return unavailable(err)
}

// refusedLogin returns the error for a refused login. Only the log may show the reason.
func refusedLogin(reason string) error {
	return core.Wrap(core.CodeUnauthenticated, errors.New(reason), "authorization required")
}
