package authtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// outageLies returns lies about tokens while the provider changes or fails.
func outageLies() map[string]func(*right) {
	on := func(kind error, reason string, then func(c *verifying)) func(*right) {
		return verifies(after(func(c *verifying) {
			if errors.Is(c.err, kind) && c.says(reason) {
				then(c)
			}
		}))
	}
	readKeys := func(c *verifying) error {
		_, _, err := get(c.ctx, keysAddress(c.p))
		return plugins.Unavailable(err)
	}
	needs := func(address func(issuer string) string) func(*right) { // only once, because it may ask for keys seldom
		return func(r *right) {
			var has atomic.Bool
			r.verify = after(func(c *verifying) {
				if c.err == nil && !has.Load() {
					_, _, err := get(c.ctx, address(c.p.Issuer()))
					c.err = plugins.Unavailable(err)
					has.Store(err == nil)
				}
			})
		}
	}
	return map[string]func(*right){
		"looks for keys at the usual path": needs(func(issuer string) string { return issuer + "/oauth2/jwks" }),
		"looks for metadata at the root of the host": needs(func(issuer string) string {
			return issuer[:strings.Index(issuer, "/realms")] + "/.well-known/openid-configuration"
		}),
		"ignores keys with unknown members": refusesKeys(func(own, _ map[string]any) bool { return own["x_note"] != nil }),
		"keeps its keys as long as the provider's cache": func(r *right) {
			var known sync.Map
			var cached atomic.Bool
			r.verify = func(c *verifying) {
				kid := text(part(c.req.Token, 0), "kid")
				if _, has := known.Load(kid); !has && cached.Load() {
					c.err = plugins.ErrUnauthenticated
				} else if c.ask(); c.err == nil {
					known.Store(kid, true)
					if header, _, err := get(c.ctx, keysAddress(c.p)); err == nil {
						cached.Store(strings.Contains(header.Get("Cache-Control"), "max-age"))
					}
				}
			}
		},
		"returns UNAUTHENTICATED when the provider is unavailable": on(plugins.ErrUnavailable, "", func(c *verifying) { c.err = plugins.ErrUnauthenticated }),
		"accepts tokens that it cannot check":                      on(plugins.ErrUnavailable, "", peek),
		"reads documents about another issuer":                     on(plugins.ErrUnavailable, "about the issuer", peek),
		"follows redirects to other hosts":                         on(plugins.ErrUnavailable, "redirect", peek),
		"reads responses of any size":                              on(plugins.ErrUnavailable, "is larger", peek),
		"uses a key that was removed": on(plugins.ErrUnauthenticated, "no key", func(c *verifying) {
			if strings.HasPrefix(text(part(c.req.Token, 0), "kid"), "key-") {
				peek(c)
			}
		}),
		"fetches keys for each unknown key id": on(plugins.ErrUnauthenticated, "no key", func(c *verifying) { _ = readKeys(c) }),
		"never reads the key set again": func(r *right) {
			var known sync.Map
			var read atomic.Bool
			r.verify = func(c *verifying) {
				kid := text(part(c.req.Token, 0), "kid")
				if _, has := known.Load(kid); !has && read.Load() {
					c.err = plugins.ErrUnauthenticated
				} else if c.ask(); c.err == nil {
					known.Store(kid, true)
					read.Store(true)
				}
			}
		},
		"remembers unknown key ids for a minute": func(r *right) {
			var unknown sync.Map
			r.verify = func(c *verifying) {
				kid := text(part(c.req.Token, 0), "kid")
				if at, ok := unknown.Load(kid); ok && time.Since(at.(time.Time)) < time.Minute {
					c.err = plugins.ErrUnauthenticated
				} else if c.ask(); c.says("no key") {
					unknown.Store(kid, time.Now())
				}
			}
		},
		"stops fetching keys after six unknown key ids": func(r *right) {
			var known sync.Map
			var unknown atomic.Int32
			r.verify = func(c *verifying) {
				kid := text(part(c.req.Token, 0), "kid")
				if _, has := known.Load(kid); !has && unknown.Load() >= 6 {
					c.err = plugins.ErrUnauthenticated
				} else if c.ask(); c.err == nil {
					known.Store(kid, true)
				} else if c.says("no key") {
					unknown.Add(1)
				}
			}
		},
		"waits only half a second for its provider": verifies(func(c *verifying) {
			ctx, cancel := context.WithTimeout(c.ctx, 500*time.Millisecond)
			defer cancel()
			c.ctx = ctx
			c.ask()
		}),
		"never retries a provider that failed": func(r *right) {
			var failed atomic.Bool
			r.verify = after(func(c *verifying) {
				if failed.Load() {
					c.got, c.err = auth.Identity{}, plugins.ErrUnavailable
				} else if errors.Is(c.err, plugins.ErrUnavailable) {
					failed.Store(true)
				}
			})
		},
		"returns not found for metadata while the provider is unavailable": func(r *right) {
			r.metadata = func(_ *json.RawMessage, err *error) {
				if *err != nil {
					*err = plugins.ErrNotFound
				}
			}
		},
		"asks the provider about every token": verifies(after(func(c *verifying) {
			if c.err == nil {
				c.err = readKeys(c)
			}
		})),
	}
}

// stallLies returns adapters that do not handle deadlines correctly.
func stallLies() map[string]func(*right) {
	return map[string]func(*right){
		"ignores deadlines": verifies(func(c *verifying) {
			c.ctx = context.WithoutCancel(c.ctx)
			c.ask()
		}),
		"verifies one token at a time": func(r *right) {
			var one sync.Mutex
			r.verify = func(c *verifying) {
				one.Lock()
				defer one.Unlock()
				c.ctx = context.WithoutCancel(c.ctx)
				c.ask()
			}
		},
		"shares the failure of the first call with others": func(r *right) {
			var mu sync.Mutex
			var first chan struct{}
			var failure error
			r.verify = func(c *verifying) {
				mu.Lock()
				waits := first
				if waits == nil {
					first = make(chan struct{})
				}
				mine := first
				mu.Unlock()
				if waits == nil {
					c.ask()
					mu.Lock()
					defer mu.Unlock()
					failure = c.err
					close(mine)
					return
				}
				select {
				case <-waits:
					if mu.Lock(); failure != nil {
						c.err = failure
					}
					if mu.Unlock(); c.err == nil {
						c.ask()
					}
				case <-c.ctx.Done():
					c.err = plugins.Unavailable(c.ctx.Err())
				}
			}
		},
		"rejects a token when the deadline has passed": verifies(after(func(c *verifying) {
			if c.ctx.Err() != nil {
				c.err = plugins.ErrUnauthenticated
			}
		})),
	}
}

func documentLies() map[string]func(*right) {
	relays := func(change func(doc map[string]any)) func(*right) {
		return func(r *right) {
			r.metadata = func(raw *json.RawMessage, err *error) {
				var doc map[string]any
				if *err == nil && json.Unmarshal(*raw, &doc) == nil {
					change(doc)
					*raw, _ = json.Marshal(doc)
				}
			}
		}
	}
	describes := func(change func(*auth.Description)) func(*right) { return func(r *right) { r.describe = change } }
	return map[string]func(*right){
		"rounds numbers in metadata":               relays(func(map[string]any) {}),
		"names its own token endpoint":             relays(func(doc map[string]any) { doc["token_endpoint"] = "https://adapter.example/token" }),
		"names a host as the authorization server": describes(func(d *auth.Description) { d.AuthorizationServers = []string{"id.example.com"} }),
		"does not list RS256":                      describes(func(d *auth.Description) { d.Algorithms = []string{"PS256"} }),
		"names another issuer":                     describes(func(d *auth.Description) { d.Issuer += "/" }),
	}
}

func introspectionLies() map[string]func(*right) {
	return map[string]func(*right){
		"accepts tokens that are not active":         believes("no longer active", always),
		"accepts tokens about another subject":       believes("about another subject", always),
		"rejects tokens that it cannot introspect":   outageLies()["returns UNAUTHENTICATED when the provider is unavailable"],
		"accepts tokens that it cannot introspect":   outageLies()["accepts tokens that it cannot check"],
		"caches for seconds that a token is active":  remembers(5*time.Second, func(c *verifying) string { return c.req.Token }),
		"introspects only one token of each subject": remembers(time.Minute, func(c *verifying) string { return text(claimsOf(c.req.Token), "sub") }),
	}
}
