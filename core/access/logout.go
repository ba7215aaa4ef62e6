package access

import (
	"context"
	"errors"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// BackchannelLogout handles an identity provider's logout token (OpenID Connect Back-Channel Logout 1.0). It ends
// everything that depends on the session or the subject in the token. The error is
// core.CodeBadRequest for a token that is invalid or was used before, core.CodeNotConfigured if no adapter
// supports logout tokens, and core.CodeUnavailable if the token cannot be checked or recorded.
func (a *Access) BackchannelLogout(ctx context.Context, token string) error {
	if token == "" || len(token) > maxToken {
		return invalidLogout(errors.New("the token is missing or too long"))
	}
	g := a.gate.Load()
	var refused, failed error
	for _, p := range g.candidates(ctx, token) {
		l, err := a.verifyLogout(ctx, p, token)
		switch {
		case err == nil:
			return a.logOut(ctx, l)
		case errors.Is(err, plugins.ErrUnauthenticated):
			refused = errors.Join(refused, err)
		case !errors.Is(err, plugins.ErrUnimplemented):
			failed = errors.Join(failed, err)
		}
	}
	switch {
	case failed != nil:
		a.log.Warn("logout token not verified", "error", failed)
		return unavailable(failed)
	case refused != nil:
		a.log.Warn("logout token refused", "error", refused)
		return invalidLogout(refused)
	}
	return core.Errorf(core.CodeNotConfigured, "no auth adapter accepts logout tokens; set auth.adapter to one that does, with clientId")
}

// verifyLogout has an adapter check a logout token, which must come from the adapter's own issuer.
func (a *Access) verifyLogout(ctx context.Context, p *trusted, token string) (auth.Logout, error) {
	sessions, can := p.Adapter.(auth.Sessions)
	if !can {
		return auth.Logout{}, plugins.ErrUnimplemented
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	l, err := sessions.VerifyLogout(ctx, token)
	if err != nil {
		return auth.Logout{}, err
	}
	about, err := p.describe(ctx)
	if err == nil && about.Issuer != l.Issuer {
		err = plugins.ErrUnauthenticated
	}
	return l, err
}

func (a *Access) logOut(ctx context.Context, l auth.Logout) error {
	err := a.Revoke(ctx, core.Revocation{
		Issuer: l.Issuer, Subject: l.Subject, Session: core.SessionHash(l.Issuer, l.SessionID),
		Once: fingerprintOf(l.Issuer + "\n" + l.TokenID).String(), Expires: l.ExpiresAt,
	})
	if core.CodeOf(err) == core.CodeConflict {
		a.log.Warn("logout token refused: it was used before", "issuer", l.Issuer)
		return invalidLogout(err)
	}
	if err == nil {
		a.log.Info("logged out by the identity provider", "issuer", l.Issuer, "subject", l.Subject)
	}
	return err
}

func invalidLogout(cause error) error {
	return core.Wrap(core.CodeBadRequest, cause, "the logout token was rejected")
}
