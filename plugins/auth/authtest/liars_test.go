package authtest_test

import (
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

func verifies(hook func(*verifying)) func(*right) { return func(r *right) { r.verify = hook } }

// believes accepts tokens that the honest adapter rejects for this reason, if when returns true.
func believes(reason string, when func(header, claims map[string]any) bool) func(*right) {
	return verifies(after(func(c *verifying) {
		if errors.Is(c.err, plugins.ErrUnauthenticated) && c.says(reason) && when(part(c.req.Token, 0), claimsOf(c.req.Token)) {
			peek(c)
		}
	}))
}

// peek accepts a token with the identity that is in it.
func peek(c *verifying) {
	c.got, c.err = auth.Identity{Issuer: c.p.Issuer(), Subject: text(claimsOf(c.req.Token), "sub"), ExpiresAt: time.Now().Add(time.Minute)}, nil
}

func always(map[string]any, map[string]any) bool { return true }

// text returns a string claim.
func text(claims map[string]any, name string) string { s, _ := claims[name].(string); return s }

// refuses rejects good tokens if when returns true.
func refuses(when func(req auth.VerifyRequest, header, claims map[string]any) bool) func(*right) {
	return verifies(after(func(c *verifying) {
		if c.err == nil && when(c.req, part(c.req.Token, 0), claimsOf(c.req.Token)) {
			c.got, c.err = auth.Identity{}, plugins.ErrUnauthenticated
		}
	}))
}

// answers modifies the identity of a good token.
func answers(change func(id *auth.Identity, claims map[string]any)) func(*right) {
	return verifies(after(func(c *verifying) {
		if c.err == nil {
			change(&c.got, claimsOf(c.req.Token))
		}
	}))
}

// rewrites changes each token before it is verified.
func rewrites(change func(string) string) func(*right) {
	return verifies(func(c *verifying) {
		c.req.Token = change(c.req.Token)
		c.ask()
	})
}

// remembers caches each result under a key for some time.
func remembers(long time.Duration, key func(*verifying) string) func(*right) {
	type verdict struct {
		verifying
		until time.Time
	}
	return func(r *right) {
		var known sync.Map
		r.verify = func(c *verifying) {
			if v, ok := known.Load(key(c)); ok && time.Now().Before(v.(verdict).until) {
				c.got, c.err = v.(verdict).got, v.(verdict).err
				return
			}
			c.ask()
			known.Store(key(c), verdict{*c, time.Now().Add(long)})
		}
	}
}

// remembersRefusals keeps rejecting a token after it has become valid.
func remembersRefusals(r *right) {
	var refused sync.Map
	r.verify = func(c *verifying) {
		if err, known := refused.Load(c.req.Token); known {
			c.err = err.(error)
			return
		}
		if c.ask(); c.err != nil {
			refused.Store(c.req.Token, c.err)
		}
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

func TestEveryFaultyImplementationIsCaught(t *testing.T) {
	keys := newKeys(t)
	of := func(lies map[string]func(*right)) map[string]func(*authtest.Subject) {
		all := map[string]func(*authtest.Subject){}
		for lie, change := range lies {
			all[lie] = func(s *authtest.Subject) { *s = subject(keys, change) }
		}
		return all
	}
	proves := func(lie string) func(*authtest.Subject) {
		return func(s *authtest.Subject) { *s = proving(keys, lie) }
	}
	reports := func(wait time.Duration, change func(*auth.Revocation)) func(*authtest.Subject) {
		return func(s *authtest.Subject) { *s = opaqueSubject(t, change, wait) }
	}
	plugintest.Liars(t, plugintest.Time, authtest.Properties(), plugintest.Trial(kit.Normal), func(_ *testing.T, change func(*authtest.Subject)) authtest.Subject {
		s := subject(keys, func(*right) {})
		change(&s)
		return s
	}, plugintest.Lies[*authtest.Subject]{
		authtest.Verdicts: of(verdictLies()), authtest.Crowds: of(crowdLies()), authtest.Clocks: of(clockLies()), authtest.Outages: of(outageLies()), authtest.Stalls: of(stallLies()), authtest.Documents: of(documentLies()),
		authtest.Introspection: of(introspectionLies()), authtest.Logins: of(loginLies()), authtest.Renewals: of(renewalLies()), authtest.Logouts: of(logoutLies()),
		authtest.Proofs: {
			"does not remember proofs": proves("replay"), "ignores the case of methods": proves("method"), "ignores the case of certificates": proves("certificate"),
			"accepts proofs for other tokens": proves("token"), "remembers only forty proofs": proves("memory"), "remembers proofs for half a minute": proves("time"),
		},
		authtest.Revocations: {
			"reports revocations of all users": reports(0, func(r *auth.Revocation) { r.Subject = "alice" }), "names no issuer": reports(0, func(r *auth.Revocation) { r.Issuer = "" }),
			"writes digests in upper case": reports(0, func(r *auth.Revocation) { r.Subject, r.TokenSHA256 = "", strings.Repeat("AB", 32) }),
			"reports revocations late":     reports(4*time.Second, func(*auth.Revocation) {}),
		},
		authtest.Undeclared: {
			"serves sessions without declaring them": func(s *authtest.Subject) { s.Rechecks = false }, "serves logins without declaring them": func(s *authtest.Subject) { s.Logins = false },
		},
	})
}
