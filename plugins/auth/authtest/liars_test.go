package authtest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
)

// believes accepts tokens that the honest adapter rejects for this reason, if when returns true.
func believes(reason string, when func(header, claims map[string]any) bool) func(*right) {
	return func(r *right) {
		r.verify = func(ctx context.Context, req auth.VerifyRequest, honest verifier) (auth.Identity, error) {
			id, err := honest(ctx, req)
			if errors.Is(err, plugins.ErrUnauthenticated) && strings.Contains(err.Error(), reason) && when(part(req.Token, 0), claimsOf(req.Token)) {
				return peek(r, req.Token)
			}
			return id, err
		}
	}
}

// peek returns the identity in a token without verifying it.
func peek(r *right, token string) (auth.Identity, error) {
	return auth.Identity{Issuer: r.p.Issuer(), Subject: text(claimsOf(token), "sub"), ExpiresAt: time.Now().Add(time.Minute)}, nil
}

func always(map[string]any, map[string]any) bool { return true }

// text returns a string claim.
func text(claims map[string]any, name string) string { s, _ := claims[name].(string); return s }

// refuses rejects good tokens if when returns true.
func refuses(when func(req auth.VerifyRequest, header, claims map[string]any) bool) func(*right) {
	return func(r *right) {
		r.verify = func(ctx context.Context, req auth.VerifyRequest, honest verifier) (auth.Identity, error) {
			if id, err := honest(ctx, req); err != nil || !when(req, part(req.Token, 0), claimsOf(req.Token)) {
				return id, err
			}
			return auth.Identity{}, plugins.ErrUnauthenticated
		}
	}
}

// answers modifies the identity of a good token.
func answers(change func(id *auth.Identity, claims map[string]any)) func(*right) {
	return func(r *right) {
		r.verify = func(ctx context.Context, req auth.VerifyRequest, honest verifier) (auth.Identity, error) {
			id, err := honest(ctx, req)
			if err == nil {
				change(&id, claimsOf(req.Token))
			}
			return id, err
		}
	}
}

// rewrites changes each token before it is verified.
func rewrites(change func(string) string) func(*right) {
	return func(r *right) {
		r.verify = func(ctx context.Context, req auth.VerifyRequest, honest verifier) (auth.Identity, error) {
			req.Token = change(req.Token)
			return honest(ctx, req)
		}
	}
}

// remembers caches each result under a key for some time.
func remembers(long time.Duration, key func(auth.VerifyRequest) string) func(*right) {
	type verdict struct {
		id    auth.Identity
		err   error
		until time.Time
	}
	return func(r *right) {
		var known sync.Map
		r.verify = func(ctx context.Context, req auth.VerifyRequest, honest verifier) (auth.Identity, error) {
			if v, ok := known.Load(key(req)); ok && time.Now().Before(v.(verdict).until) {
				return v.(verdict).id, v.(verdict).err
			}
			id, err := honest(ctx, req)
			known.Store(key(req), verdict{id, err, time.Now().Add(long)})
			return id, err
		}
	}
}

// remembersRefusals keeps rejecting a token after it has become valid.
func remembersRefusals(r *right) {
	var refused sync.Map
	r.verify = func(ctx context.Context, req auth.VerifyRequest, honest verifier) (auth.Identity, error) {
		if err, known := refused.Load(req.Token); known {
			return auth.Identity{}, err.(error)
		}
		id, err := honest(ctx, req)
		if err != nil {
			refused.Store(req.Token, err)
		}
		return id, err
	}
}

// off returns how many seconds a token's time claim is from now.
func off(claims map[string]any, name string) float64 {
	at, ok := claims[name].(float64)
	if !ok {
		return 0
	}
	return at - float64(time.Now().UnixNano())/1e9
}

func piece(token string, i int) string { return strings.Split(token+"...", ".")[i] }

func TestEveryLiarIsCaught(t *testing.T) {
	keys := newKeys(t)
	var all []plugintest.Liar[authtest.Subject]
	add := func(lie, property string, open func(t *testing.T) authtest.Subject) {
		all = append(all, plugintest.Liar[authtest.Subject]{Lie: lie, Property: property, Open: open})
	}
	for property, lies := range map[string]map[string]func(*right){
		authtest.Verdicts: verdictLies(), authtest.Crowds: crowdLies(), authtest.Clocks: clockLies(), authtest.Outages: outageLies(), authtest.Stalls: stallLies(), authtest.Documents: documentLies(),
		authtest.Introspection: introspectionLies(), authtest.Logins: loginLies(), authtest.Renewals: renewalLies(), authtest.Logouts: logoutLies(),
	} {
		for lie, change := range lies {
			add(lie, property, func(*testing.T) authtest.Subject { return subject(keys, change) })
		}
	}
	for lie, about := range map[string]string{"does not remember proofs": "replay", "compares methods without their case": "method", "compares certificates without their case": "certificate", "takes proofs for other tokens": "token", "remembers forty proofs": "memory"} {
		add(lie, authtest.Proofs, func(*testing.T) authtest.Subject {
			prove := prover(about)
			s := subject(keys, func(r *right) { r.binds = prove })
			s.Binds = true
			return s
		})
	}
	for lie, change := range map[string]func(auth.Revocation) auth.Revocation{
		"reports revocations of everybody": func(r auth.Revocation) auth.Revocation { r.Subject = "alice"; return r }, "names no issuer": func(r auth.Revocation) auth.Revocation { r.Issuer = ""; return r },
		"writes digests in capitals": func(r auth.Revocation) auth.Revocation {
			r.Subject, r.TokenSHA256 = "", strings.Repeat("AB", 32)
			return r
		},
	} {
		add(lie, authtest.Revocations, func(t *testing.T) authtest.Subject { return opaqueSubject(t, change, 0) })
	}
	add("reports revocations late", authtest.Revocations, func(t *testing.T) authtest.Subject {
		return opaqueSubject(t, func(r auth.Revocation) auth.Revocation { return r }, 4*time.Second)
	})
	for lie, change := range map[string]func(*authtest.Subject){"serves sessions and does not declare them": func(s *authtest.Subject) { s.Rechecks = false }, "serves logins and does not declare them": func(s *authtest.Subject) { s.Logins = false }} {
		add(lie, authtest.Undeclared, func(*testing.T) authtest.Subject {
			s := subject(keys, func(*right) {})
			change(&s)
			return s
		})
	}
	plugintest.Liars(t, authtest.Properties(), plugintest.Trial(kit.Normal), all)
}
