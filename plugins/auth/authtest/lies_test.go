package authtest_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// accepts takes what the honest adapter refuses for one reason.
type accepts struct {
	honest
	reason string
}

func (a accepts) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	id, err := a.honest.Verify(ctx, req)
	if errors.Is(err, plugins.ErrUnauthenticated) && strings.Contains(err.Error(), a.reason) {
		return peek(req.Token)
	}
	return id, err
}

// refusesAway answers unauthenticated where the answer is unavailable.
type refusesAway struct {
	honest
	reason string
}

func (a refusesAway) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	id, err := a.honest.Verify(ctx, req)
	if errors.Is(err, plugins.ErrUnavailable) && strings.Contains(err.Error(), a.reason) {
		return auth.Identity{}, plugins.ErrUnauthenticated
	}
	return id, err
}

type wavers struct {
	honest
	calls atomic.Int64
}

func (a *wavers) Describe(ctx context.Context) (auth.Description, error) {
	d, err := a.honest.Describe(ctx)
	d.Audiences = append(d.Audiences, fmt.Sprint(a.calls.Add(1)))
	return d, err
}

type letsIn struct {
	honest
	password string
}

func (a letsIn) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	if req.Token == a.password {
		return auth.Identity{Issuer: a.provider.Issuer(), Subject: "anybody", ExpiresAt: time.Now().Add(time.Hour)}, nil
	}
	return a.honest.Verify(ctx, req)
}

type repeats struct{ honest }

func (a repeats) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	id, err := a.honest.Verify(ctx, req)
	if err != nil {
		err = fmt.Errorf("%w: %q", err, req.Token)
	}
	return id, err
}

type abridges struct{ honest }

func (a abridges) Metadata(ctx context.Context) (json.RawMessage, error) {
	raw, err := a.honest.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	var known struct {
		Issuer string `json:"issuer"`
	}
	_ = json.Unmarshal(raw, &known)
	return json.Marshal(known)
}

type takesItsTime struct{ honest }

func (a takesItsTime) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	return a.honest.Verify(context.WithoutCancel(ctx), req)
}

type hidesLogin struct{ honest }

func (a hidesLogin) Describe(ctx context.Context) (auth.Description, error) {
	d, err := a.honest.Describe(ctx)
	d.Login = false
	return d, err
}

type prolongs struct{ honest }

func (a prolongs) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	id, err := a.honest.Verify(ctx, req)
	id.ExpiresAt = id.ExpiresAt.Add(time.Hour)
	return id, err
}

type wantsAudience struct{ honest }

func (a wantsAudience) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	if len(req.Audiences) == 0 {
		return auth.Identity{}, plugins.ErrUnauthenticated
	}
	return a.honest.Verify(ctx, req)
}

// oneAtATime mixes callers up that come while another one waits for the first keys.
type oneAtATime struct {
	honest
	inside atomic.Int64
}

func (a *oneAtATime) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	defer a.inside.Add(-1)
	if a.inside.Add(1) > 1 {
		return auth.Identity{Issuer: a.provider.Issuer(), Subject: "user_before", ExpiresAt: time.Now().Add(time.Hour)}, nil
	}
	return a.honest.Verify(ctx, req)
}

type knowsFirstKeyOnly struct{ honest }

func (a knowsFirstKeyOnly) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	header, _, _ := strings.Cut(req.Token, ".")
	if text, _ := base64.RawURLEncoding.DecodeString(header); strings.Contains(string(text), `"second"`) {
		return auth.Identity{}, plugins.ErrUnauthenticated
	}
	return a.honest.Verify(ctx, req)
}

type asksEachTime struct{ honest }

func (a asksEachTime) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	id, err := a.honest.Verify(ctx, req)
	if err != nil && strings.Contains(err.Error(), "no key") {
		_ = ask(ctx, a.provider.Issuer()+"/oauth2/jwks")
	}
	return id, err
}

func ask(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return fmt.Errorf("%w: %w", plugins.ErrUnavailable, err)
	}
	return resp.Body.Close()
}

type verifiesOnline struct{ honest }

func (a verifiesOnline) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	id, err := a.honest.Verify(ctx, req)
	if err != nil {
		return id, err
	}
	return id, ask(ctx, a.provider.Issuer()+"/.well-known/openid-configuration")
}

type relaysOnline struct{ honest }

func (a relaysOnline) Metadata(ctx context.Context) (json.RawMessage, error) {
	if err := ask(ctx, a.provider.Issuer()+"/.well-known/openid-configuration"); err != nil {
		return nil, err
	}
	return a.honest.Metadata(ctx)
}

type describesOnline struct{ honest }

func (a describesOnline) Describe(ctx context.Context) (auth.Description, error) {
	if err := ask(ctx, a.provider.Issuer()+"/.well-known/openid-configuration"); err != nil {
		return auth.Description{}, err
	}
	return a.honest.Describe(ctx)
}

type mistakes struct{ honest }

func (a mistakes) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	id, err := a.honest.Exchange(ctx, req)
	id.Subject = "user_mallory"
	return id, err
}

// logsIn takes logins that the honest adapter refuses for one reason.
type logsIn struct {
	honest
	reason string
}

func (a logsIn) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	id, err := a.honest.Exchange(ctx, req)
	if err != nil && strings.Contains(err.Error(), a.reason) {
		return auth.Identity{Issuer: a.provider.Issuer(), Subject: "user_alice"}, nil
	}
	return id, err
}

// forgetsVerifier takes every code whose verifier does not fit.
type forgetsVerifier struct {
	honest
	challenges sync.Map
}

func (a *forgetsVerifier) AuthorizeURL(ctx context.Context, req auth.AuthorizeRequest) (string, error) {
	a.challenges.Store(req.CodeChallenge, true)
	return a.honest.AuthorizeURL(ctx, req)
}

func (a *forgetsVerifier) fits(verifier string) bool {
	digest := sha256.Sum256([]byte(verifier))
	_, ok := a.challenges.Load(base64.RawURLEncoding.EncodeToString(digest[:]))
	return ok
}

func (a *forgetsVerifier) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	if !a.fits(req.CodeVerifier) {
		return auth.Identity{Issuer: a.provider.Issuer(), Subject: "user_alice"}, nil
	}
	return a.honest.Exchange(ctx, req)
}

// believesCode takes every code whose verifier fits.
type believesCode struct{ forgetsVerifier }

func (a *believesCode) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	id, err := a.honest.Exchange(ctx, req)
	if errors.Is(err, plugins.ErrUnauthenticated) && strings.Contains(err.Error(), "refused the code") && a.fits(req.CodeVerifier) {
		return auth.Identity{Issuer: a.provider.Issuer(), Subject: "user_alice"}, nil
	}
	return id, err
}

type refusesLogin struct{ honest }

func (a refusesLogin) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	id, err := a.honest.Exchange(ctx, req)
	if errors.Is(err, plugins.ErrUnavailable) {
		return auth.Identity{}, plugins.ErrUnauthenticated
	}
	return id, err
}
