package authtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// logoutLiar is a liar about logout tokens.
type logoutLiar struct {
	honest
	change func(ctx context.Context, h honest, token string) (auth.Logout, error)
}

func (l logoutLiar) VerifyLogout(ctx context.Context, token string) (auth.Logout, error) {
	return l.change(ctx, l.honest, token)
}

func logouts(change func(ctx context.Context, h honest, token string) (auth.Logout, error)) func(honest) auth.Adapter {
	return func(h honest) auth.Adapter { return logoutLiar{h, change} }
}

// endsFor accepts logout tokens that the honest adapter refuses for a reason.
func endsFor(reasons ...string) func(honest) auth.Adapter {
	return logouts(func(ctx context.Context, h honest, token string) (auth.Logout, error) {
		l, err := h.VerifyLogout(ctx, token)
		for _, reason := range reasons {
			if errors.Is(err, plugins.ErrUnauthenticated) && strings.Contains(err.Error(), reason) {
				return auth.Logout{Issuer: h.provider.Issuer(), Subject: "user_alice", TokenID: "1", ExpiresAt: time.Now().Add(time.Minute)}, nil
			}
		}
		return l, err
	})
}

// answersLogouts changes what a good logout token is answered with.
func answersLogouts(change func(*auth.Logout)) func(honest) auth.Adapter {
	return logouts(func(ctx context.Context, h honest, token string) (auth.Logout, error) {
		l, err := h.VerifyLogout(ctx, token)
		if err == nil {
			change(&l)
		}
		return l, err
	})
}

// usedLogouts refuses a logout token that it has seen.
type usedLogouts struct {
	honest
	seen sync.Map
}

func (u *usedLogouts) VerifyLogout(ctx context.Context, token string) (auth.Logout, error) {
	l, err := u.honest.VerifyLogout(ctx, token)
	if _, again := u.seen.LoadOrStore(l.TokenID, true); again && err == nil {
		return auth.Logout{}, plugins.ErrUnauthenticated
	}
	return l, err
}

// mixesLogouts answers a logout token that comes while another one is checked with that one's session.
type mixesLogouts struct {
	honest
	mu   sync.Mutex
	last auth.Logout
}

func (m *mixesLogouts) VerifyLogout(ctx context.Context, token string) (auth.Logout, error) {
	l, err := m.honest.VerifyLogout(ctx, token)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last.TokenID == "" {
		m.last = l
	}
	return m.last, err
}

func logoutLies() []lie {
	refused := func(clause string) string { return "a logout token with " + clause + " is refused" }
	const names = "a logout token names the session, the subject or both"
	refusesTyped := func(types ...string) func(honest) auth.Adapter {
		return logouts(func(ctx context.Context, h honest, token string) (auth.Logout, error) {
			for _, typ := range types {
				if headerOf(token, "typ") == typ {
					return auth.Logout{}, plugins.ErrUnauthenticated
				}
			}
			return h.VerifyLogout(ctx, token)
		})
	}
	return []lie{
		{"answers with no session", names, answersLogouts(func(l *auth.Logout) { l.SessionID = "" })},
		{"answers with the subject in every case", names, answersLogouts(func(l *auth.Logout) { l.Subject = "user_alice" })},
		{"answers with an identifier of its own", names, answersLogouts(func(l *auth.Logout) { l.TokenID = "1" })},
		{"answers with another issuer", names, answersLogouts(func(l *auth.Logout) { l.Issuer += "/" })},
		{"says that logout tokens are good for a day", names, answersLogouts(func(l *auth.Logout) { l.ExpiresAt = l.ExpiresAt.Add(24 * time.Hour) })},
		{"says that logout tokens are over at once", names, answersLogouts(func(l *auth.Logout) { l.ExpiresAt = time.Now() })},
		{"lower-cases and trims subjects of logouts", names, answersLogouts(func(l *auth.Logout) {
			l.Subject, l.SessionID = strings.TrimSpace(l.Subject), strings.ReplaceAll(l.SessionID, "%20", " ")
		})},
		{"accepts the type JWT alone", names, refusesTyped("logout+jwt", "")},
		{"accepts the type logout+jwt alone", names, refusesTyped("JWT")},
		{"wants a session in each logout token", names, logouts(func(ctx context.Context, h honest, token string) (auth.Logout, error) {
			l, err := h.VerifyLogout(ctx, token)
			if err == nil && l.SessionID == "" {
				err = plugins.ErrUnauthenticated
			}
			return l, err
		})},
		{"remembers logout tokens", "a logout token that comes again is checked again", func(h honest) auth.Adapter { return &usedLogouts{honest: h} }},
		{"knows the first key of logout tokens alone", "a logout token by a key that the provider rotated in is accepted", logouts(func(ctx context.Context, h honest, token string) (auth.Logout, error) {
			if headerOf(token, "kid") == "second" {
				return auth.Logout{}, plugins.ErrUnauthenticated
			}
			return h.VerifyLogout(ctx, token)
		})},
		{"refuses logout tokens while the provider is away", "a logout token whose key cannot be read is neither accepted nor refused", logouts(func(ctx context.Context, h honest, token string) (auth.Logout, error) {
			l, err := h.VerifyLogout(ctx, token)
			if errors.Is(err, plugins.ErrUnavailable) {
				err = plugins.ErrUnauthenticated
			}
			return l, err
		})},
		{"waits for the keys of logout tokens without end", "the check of a logout token returns when its time is over", logouts(func(ctx context.Context, h honest, token string) (auth.Logout, error) {
			long, cancel := context.WithTimeout(context.WithoutCancel(ctx), 6*time.Second)
			defer cancel()
			return h.VerifyLogout(long, token)
		})},
		{"remembers one logout token", "logout tokens at once are each answered with their own session", func(h honest) auth.Adapter { return &mixesLogouts{honest: h} }},
		{"takes logout tokens for bearer tokens", "a logout token is no bearer token", believes(func(r auth.VerifyRequest, _ error) bool { return headerOf(r.Token, "typ") == "logout+jwt" })},
		{"repeats the logout token", "no error repeats the logout token", logouts(func(ctx context.Context, h honest, token string) (auth.Logout, error) {
			l, err := h.VerifyLogout(ctx, token)
			if err != nil {
				err = fmt.Errorf("%w: %s", err, token)
			}
			return l, err
		})},
		{"does not check signatures of logout tokens", refused("a bad signature"), endsFor("signature")},
		{"ends sessions of other issuers", refused("another issuer"), endsFor("of the issuer")},
		{"ends sessions of other clients", refused("another audience"), endsFor("for another client")},
		{"needs no iat of logout tokens", refused("no iat"), endsFor("must have an iat")},
		{"needs no exp of logout tokens", refused("no exp"), endsFor("no expiry")},
		{"needs no jti of logout tokens", refused("no jti"), endsFor("no jti")},
		{"needs no event in logout tokens", refused("no logout event"), endsFor("no logout event")},
		{"ends sessions by logout tokens that have expired", refused("an expiry that is over"), endsFor("has expired")},
		{"ends sessions by logout tokens of the future", refused("a start that is still to come"), endsFor("(iat)")},
		{"ends sessions by id tokens", refused("a nonce"), endsFor("has a nonce")},
		{"ends sessions of nobody", refused("neither subject nor session"), endsFor("neither a subject", "is not text of")},
		{"ends sessions by access tokens", refused("another form"), logouts(func(ctx context.Context, h honest, token string) (auth.Logout, error) {
			if id, err := h.Verify(ctx, auth.VerifyRequest{Token: token}); err == nil {
				return auth.Logout{Issuer: id.Issuer, Subject: id.Subject, TokenID: "1", ExpiresAt: id.ExpiresAt}, nil
			}
			return h.VerifyLogout(ctx, token)
		})},
	}
}
