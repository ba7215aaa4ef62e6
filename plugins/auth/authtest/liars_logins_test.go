package authtest_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

func exchanges(hook func(*exchanging)) func(*right) { return func(r *right) { r.exchange = hook } }

func authorizes(change func(req *auth.AuthorizeRequest)) func(*right) {
	return func(r *right) {
		r.authorize = func(c *authorizing) {
			change(&c.req)
			c.ask()
		}
	}
}

func loginLies() map[string]func(*right) {
	// ends accepts logins that the honest adapter rejects for this reason.
	ends := func(reason string) func(*right) {
		return exchanges(after(func(c *exchanging) {
			if c.says(reason) {
				c.got, c.err = auth.Identity{Issuer: c.p.Issuer(), Subject: "user_1", ExpiresAt: time.Now().Add(time.Minute)}, nil
			}
		}))
	}
	loggedIn := func(change func(id *auth.Identity)) func(*right) {
		return exchanges(after(func(c *exchanging) { change(&c.got) }))
	}
	return map[string]func(*right){
		"drops the query of the provider's endpoint": func(r *right) {
			r.authorize = after(func(c *authorizing) { c.got = strings.Replace(c.got, "tenant=", "x=", 1) })
		},
		"does not check the nonce":                ends("nonce"),
		"accepts id tokens for any audience":      ends("another audience"),
		"accepts id tokens of other clients":      ends("another client"),
		"accepts logins without an id token":      ends("no id token"),
		"accepts id tokens signed by anyone":      ends("signature"),
		"accepts logins whose code was refused":   ends("refused the code"),
		"accepts logins while the endpoint fails": ends("endpoint failed"),
		"rejects logins while UserInfo fails": exchanges(after(func(c *exchanging) {
			if c.err == nil && c.got.Email == "" && c.got.DisplayName == "" {
				c.err = plugins.ErrUnauthenticated
			}
		})),
		"uses the role from UserInfo":                    loggedIn(func(id *auth.Identity) { id.OrgRole = "owner" }),
		"returns the same email address for every login": loggedIn(func(id *auth.Identity) { id.Email = "user_1@example.com" }),
		"does not return the session of a login":         loggedIn(func(id *auth.Identity) { id.SessionID = "" }),
		"truncates the state to 512 bytes":               authorizes(func(req *auth.AuthorizeRequest) { req.State = req.State[:min(len(req.State), 512)] }),
		"redirects to the address in its settings":       authorizes(func(req *auth.AuthorizeRequest) { req.RedirectURI = "" }),
		"repeats the code in errors": exchanges(after(func(c *exchanging) {
			if c.err != nil {
				c.err = errors.Join(c.err, errors.New("code="+url.QueryEscape(c.req.Code)))
			}
		})),
		"remembers only one nonce at a time": func(r *right) {
			var nonce atomic.Value
			authorizes(func(req *auth.AuthorizeRequest) { nonce.Store(req.Nonce) })(r)
			r.exchange = func(c *exchanging) {
				c.req.Nonce, _ = nonce.Load().(string)
				c.ask()
			}
		},
	}
}

func renewalLies() map[string]func(*right) {
	checks := func(change func(c *checking)) func(*right) { return func(r *right) { r.check = after(change) } }
	confirms := func(reason string) func(*right) {
		return checks(func(c *checking) {
			if c.says(reason) {
				c.got, c.err = auth.Identity{Issuer: c.p.Issuer(), Subject: c.req.Subject, Renewal: c.req.Renewal}, nil
			}
		})
	}
	return map[string]func(*right){
		"confirms logins that the provider ended":           confirms("refuses the refresh token"),
		"confirms logins about another subject":             confirms("another subject"),
		"confirms logins whose key was removed":             confirms("no longer has the key"),
		"confirms anything that is not a renewal":           confirms("not from this adapter"),
		"confirms logins while the provider is unavailable": confirms("endpoint failed"),
		"accepts new id tokens signed by anyone":            confirms("signature"),
		"accepts new id tokens of other clients":            confirms("another client"),
		"returns the old renewal":                           checks(func(c *checking) { c.got.Renewal = c.req.Renewal }),
		"returns no renewal":                                checks(func(c *checking) { c.got.Renewal = "" }),
		"drops the refresh token if no new one is returned": checks(func(c *checking) {
			var before, after map[string]any
			_ = json.Unmarshal([]byte(c.req.Renewal.Reveal()), &before)
			if json.Unmarshal([]byte(c.got.Renewal.Reveal()), &after) == nil && after["refresh"] == before["refresh"] {
				delete(after, "refresh")
				raw, _ := json.Marshal(after)
				c.got.Renewal = plugins.Secret(raw)
			}
		}),
		"confirms another session": checks(func(c *checking) { c.got.SessionID = "another" }),
		"ends logins while the provider is unavailable": checks(func(c *checking) {
			if errors.Is(c.err, plugins.ErrUnavailable) {
				c.err = plugins.ErrUnauthenticated
			}
		}),
		"logs renewals": checks(func(c *checking) { _, _ = io.WriteString(c.out, "check "+c.req.Renewal.Reveal()+"\n") }),
		"keeps renewals in memory": func(r *right) {
			known := sync.Map{}
			r.exchange = after(func(c *exchanging) {
				known.Store(c.got.Subject, c.got.Renewal)
				c.got.Renewal = plugins.Secret("the-renewal-of-" + c.got.Subject)
			})
			r.check = func(c *checking) {
				given := c.req.Renewal
				kept, _ := known.Load(strings.TrimPrefix(given.Reveal(), "the-renewal-of-"))
				c.req.Renewal, _ = kept.(plugins.Secret)
				if c.ask(); c.err == nil {
					known.Store(c.got.Subject, c.got.Renewal)
					c.got.Renewal = given
				}
			}
		},
	}
}

func logoutLies() map[string]func(*right) {
	logouts := func(change func(c *loggingOut)) func(*right) { return func(r *right) { r.logout = after(change) } }
	takes := func(reason string) func(*right) {
		return logouts(func(c *loggingOut) {
			if claims := claimsOf(c.req); c.says(reason) {
				c.err, c.got = nil, auth.Logout{Issuer: c.p.Issuer(), Subject: text(claims, "sub"), SessionID: text(claims, "sid"), TokenID: text(claims, "jti"), ExpiresAt: time.Now()}
			}
		})
	}
	return map[string]func(*right){
		"accepts logout tokens of other clients":     takes("another client"),
		"accepts logout tokens without an event":     takes("no logout event"),
		"accepts logout tokens with a nonce":         takes("has a nonce"),
		"accepts expired logout tokens":              takes("has expired"),
		"accepts logout tokens without a jti":        takes("no jti"),
		"does not check signatures of logout tokens": takes("signature"),
		"always returns a session":                   logouts(func(c *loggingOut) { c.got.SessionID += "x" }),
		"returns its own token identifiers":          logouts(func(c *loggingOut) { c.got.TokenID = "1" }),
		"rejects logout tokens when it cannot read the keys": logouts(func(c *loggingOut) {
			if errors.Is(c.err, plugins.ErrUnavailable) {
				c.err = plugins.ErrUnauthenticated
			}
		}),
		"accepts a logout token only once": func(r *right) {
			var used sync.Map
			r.logout = after(func(c *loggingOut) {
				if _, before := used.LoadOrStore(c.req, true); before {
					c.got, c.err = auth.Logout{}, plugins.ErrUnauthenticated
				}
			})
		},
	}
}
