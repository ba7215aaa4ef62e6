package authtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// withLogin are promises of the Login capability. For an adapter without it they are skipped.
func withLogin() []check {
	return []check{
		{name: "a browser login ends with the person", contract: "Exchange trades the code that came back for the identity of the person", run: logsIn},
		{name: "a login that comes back with another nonce is refused", contract: "for one whose nonce differs", run: refusesNonce},
		{name: "a login with another verifier is refused", contract: "UNAUTHENTICATED for a code that the provider refuses", run: refusesVerifier},
		{name: "a code that nobody gave is refused", contract: "UNAUTHENTICATED for a code that the provider refuses", run: refusesCode},
		{name: "a login is unavailable while the provider is away", contract: "UNAVAILABLE when the provider cannot be asked", run: loginCannotTell},
	}
}

// loginAsDescribed also holds for adapters at the other end of a wire, which have the methods
// whatever the plugin has.
func loginAsDescribed(ctx context.Context, st *stage) error {
	d, err := st.adapter.Describe(ctx)
	if err != nil {
		return fmt.Errorf("describe failed: %w", err)
	}
	login, ok := st.adapter.(auth.Login)
	if !ok {
		if d.Login {
			return errors.New("describe says that there is browser login; the adapter has no such methods")
		}
		return nil
	}
	address, err := login.AuthorizeURL(ctx, newLogin().request())
	switch {
	case d.Login && err != nil:
		return fmt.Errorf("describe says that there is browser login; its start failed: %w", err)
	case !d.Login && err == nil:
		return fmt.Errorf("describe says that there is no browser login; it would start at %s", address)
	}
	return nil
}

func noLogin() error { return kit.Skip("the adapter has no browser login") }

// attempt is what the server keeps of one login.
type attempt struct{ state, nonce, verifier string }

func newLogin() attempt {
	return attempt{state: rand.Text(), nonce: rand.Text(), verifier: rand.Text() + rand.Text()}
}

func (a attempt) request() auth.AuthorizeRequest {
	digest := sha256.Sum256([]byte(a.verifier))
	return auth.AuthorizeRequest{RedirectURI: RedirectURI, State: a.state, Nonce: a.nonce, CodeChallenge: encode(digest[:])}
}

func (a attempt) exchange(code string) auth.ExchangeRequest {
	return auth.ExchangeRequest{RedirectURI: RedirectURI, Code: code, Nonce: a.nonce, CodeVerifier: a.verifier}
}

// loginOf is the adapter's Login, nil when describe says that there is none.
func loginOf(ctx context.Context, st *stage) auth.Login {
	login, ok := st.adapter.(auth.Login)
	if d, err := st.adapter.Describe(ctx); err != nil || !ok || !d.Login {
		return nil
	}
	return login
}

// browse plays the browser: it follows the adapter's URL and returns the code that came back.
func browse(ctx context.Context, login auth.Login, a attempt) (string, error) {
	address, err := login.AuthorizeURL(ctx, a.request())
	if err != nil {
		return "", fmt.Errorf("the start of a login failed: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", fmt.Errorf("the start of a login is no URL: %w", err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return "", fmt.Errorf("the provider did not answer the browser: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || back.Query().Get("code") == "" {
		return "", fmt.Errorf("the provider answered %d and gave no code: the URL must ask for one with PKCE S256, client_id, redirect_uri and the scope openid", resp.StatusCode)
	}
	if back.Query().Get("state") != a.state {
		return "", errors.New("the browser came back with another state than the request had")
	}
	return back.Query().Get("code"), nil
}

func logsIn(ctx context.Context, st *stage) error {
	login := loginOf(ctx, st)
	if login == nil {
		return noLogin()
	}
	a := newLogin()
	code, err := browse(ctx, login, a)
	if err != nil {
		return err
	}
	id, err := login.Exchange(ctx, a.exchange(code))
	if err != nil {
		return fmt.Errorf("the end of a good login failed: %w", err)
	}
	want := st.samples.Identity
	want.ExpiresAt = id.ExpiresAt
	if err := st.mustBe(id, want); err != nil {
		return fmt.Errorf("the identity of a login %w", err)
	}
	return nil
}

func refusesNonce(ctx context.Context, st *stage) error {
	return refusesChanged(ctx, st, "another nonce", func(req *auth.ExchangeRequest) { req.Nonce = rand.Text() })
}

func refusesVerifier(ctx context.Context, st *stage) error {
	return refusesChanged(ctx, st, "another verifier", func(req *auth.ExchangeRequest) { req.CodeVerifier = rand.Text() + rand.Text() })
}

func refusesCode(ctx context.Context, st *stage) error {
	return refusesChanged(ctx, st, "a code that nobody gave", func(req *auth.ExchangeRequest) { req.Code = rand.Text() })
}

func refusesChanged(ctx context.Context, st *stage, what string, change func(*auth.ExchangeRequest)) error {
	login := loginOf(ctx, st)
	if login == nil {
		return noLogin()
	}
	a := newLogin()
	code, err := browse(ctx, login, a)
	if err != nil {
		return err
	}
	req := a.exchange(code)
	change(&req)
	id, err := login.Exchange(ctx, req)
	if err := mustRefuse(id, err); err != nil {
		return fmt.Errorf("a login with %s %w", what, err)
	}
	return nil
}

func loginCannotTell(ctx context.Context, st *stage) error {
	login := loginOf(ctx, st)
	if login == nil {
		return noLogin()
	}
	a := newLogin()
	code, err := browse(ctx, login, a)
	if err != nil {
		return err
	}
	st.provider.SetFault(Away)
	id, err := login.Exchange(ctx, a.exchange(code))
	if err := mustNotTell(id, err); err != nil {
		return fmt.Errorf("a login whose provider is away %w", err)
	}
	return nil
}
