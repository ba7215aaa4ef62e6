package authtest_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// writes is a liar that answers like an honest adapter, and writes about it.
type writes struct {
	honest
	verified  func(honest, auth.VerifyRequest, error)
	exchanged func(honest, auth.ExchangeRequest, auth.Identity, error)
	checked   func(honest, auth.SessionCheck, auth.Identity, error)
	loggedOut func(h honest, token string, err error)
}

func (w writes) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	id, err := w.honest.Verify(ctx, req)
	if w.verified != nil {
		w.verified(w.honest, req, err)
	}
	return id, err
}

func (w writes) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	id, err := w.honest.Exchange(ctx, req)
	if w.exchanged != nil {
		w.exchanged(w.honest, req, id, err)
	}
	return id, err
}

func (w writes) CheckSession(ctx context.Context, req auth.SessionCheck) (auth.Identity, error) {
	id, err := w.honest.CheckSession(ctx, req)
	if w.checked != nil {
		w.checked(w.honest, req, id, err)
	}
	return id, err
}

func (w writes) VerifyLogout(ctx context.Context, token string) (auth.Logout, error) {
	l, err := w.honest.VerifyLogout(ctx, token)
	if w.loggedOut != nil {
		w.loggedOut(w.honest, token, err)
	}
	return l, err
}

// prints writes a line to the standard error of an adapter.
func (h honest) prints(words ...any) { _, _ = fmt.Fprintln(h.out, words...) }

// refreshIn is the refresh token in a renewal of the honest adapter.
func refreshIn(renewal plugins.Secret) string {
	var r struct {
		Refresh string `json:"refresh"`
	}
	_ = json.Unmarshal([]byte(renewal.Reveal()), &r)
	return r.Refresh
}

func silenceLies() []lie {
	const (
		tokens   = "nothing that the adapter logs or prints holds a bearer token"
		logins   = "nothing that the adapter logs or prints holds a login code, a code verifier or what the provider gave for them"
		renewals = "nothing that the adapter logs or prints holds a refresh token or a renewal"
		logouts  = "nothing that the adapter logs or prints holds a logout token"
	)
	verified := func(write func(honest, auth.VerifyRequest, error)) func(honest) auth.Adapter {
		return func(h honest) auth.Adapter { return writes{honest: h, verified: write} }
	}
	exchanged := func(write func(honest, auth.ExchangeRequest, auth.Identity, error)) func(honest) auth.Adapter {
		return func(h honest) auth.Adapter { return writes{honest: h, exchanged: write} }
	}
	checked := func(write func(honest, auth.SessionCheck, auth.Identity, error)) func(honest) auth.Adapter {
		return func(h honest) auth.Adapter { return writes{honest: h, checked: write} }
	}
	loggedOut := func(write func(h honest, token string, err error)) func(honest) auth.Adapter {
		return func(h honest) auth.Adapter { return writes{honest: h, loggedOut: write} }
	}
	return []lie{
		{"logs the tokens that it accepts", tokens, verified(func(h honest, req auth.VerifyRequest, err error) {
			if err == nil {
				h.log.Trace("accepted", "token", req.Token)
			}
		})},
		{"prints the tokens that it refuses", tokens, verified(func(h honest, req auth.VerifyRequest, err error) {
			if errors.Is(err, plugins.ErrUnauthenticated) {
				h.prints("refused", req.Token)
			}
		})},
		{"prints tokens in hex when it cannot tell", tokens, verified(func(h honest, req auth.VerifyRequest, err error) {
			if errors.Is(err, plugins.ErrUnavailable) {
				h.prints("cannot tell:", hex.EncodeToString([]byte(req.Token)))
			}
		})},
		{"prints the whole header of a request in base64", tokens, verified(func(h honest, req auth.VerifyRequest, _ error) {
			h.prints(base64.StdEncoding.EncodeToString([]byte("Authorization: Bearer " + req.Token + "\r\n")))
		})},
		{"logs tokens without their signature", tokens, verified(func(h honest, req auth.VerifyRequest, _ error) {
			if i := strings.LastIndex(req.Token, "."); i > 0 {
				h.log.Debug("verify", "token", req.Token[:i]+".…")
			}
		})},
		{"prints the form that it posts for a code", logins, exchanged(func(h honest, req auth.ExchangeRequest, _ auth.Identity, _ error) {
			h.prints("POST", url.Values{"code": {req.Code}, "grant_type": {"authorization_code"}}.Encode())
		})},
		{"logs the codes that the provider refuses", logins, exchanged(func(h honest, req auth.ExchangeRequest, _ auth.Identity, err error) {
			if errors.Is(err, plugins.ErrUnauthenticated) {
				h.log.Warn("refused", "code", []byte(req.Code))
			}
		})},
		{"logs the verifier while the provider is away", logins, exchanged(func(h honest, req auth.ExchangeRequest, _ auth.Identity, err error) {
			if errors.Is(err, plugins.ErrUnavailable) {
				h.log.Error("the provider is away", "request", fmt.Sprintf("%+v", req))
			}
		})},
		{"prints the refresh token of a login", logins, exchanged(func(h honest, _ auth.ExchangeRequest, id auth.Identity, _ error) {
			h.prints("logged in:", url.PathEscape(refreshIn(id.Renewal)))
		})},
		{"logs refresh tokens that were refused", renewals, checked(func(h honest, req auth.SessionCheck, _ auth.Identity, err error) {
			if errors.Is(err, plugins.ErrUnauthenticated) {
				h.log.Info("ended", "refresh", refreshIn(req.Renewal))
			}
		})},
		{"prints the renewal that takes the place of the old one in base64", renewals, checked(func(h honest, _ auth.SessionCheck, id auth.Identity, _ error) {
			h.prints("confirmed", base64.RawURLEncoding.EncodeToString([]byte(id.Renewal.Reveal())))
		})},
		{"prints renewals while the provider is away", renewals, checked(func(h honest, req auth.SessionCheck, _ auth.Identity, err error) {
			if errors.Is(err, plugins.ErrUnavailable) {
				h.prints("cannot tell:", req.Renewal.Reveal())
			}
		})},
		{"logs logout tokens", logouts, loggedOut(func(h honest, token string, err error) {
			if err == nil {
				h.log.Info("logout", "token", token)
			}
		})},
		{"prints the signature of logout tokens that it refuses", logouts, loggedOut(func(h honest, token string, err error) {
			if parts := strings.Split(token, "."); err != nil && len(parts) == 3 {
				h.prints("refused the signature", parts[2])
			}
		})},
	}
}
