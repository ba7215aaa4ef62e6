package authtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// outageLies returns lies about tokens while the provider changes or fails.
func outageLies() map[string]func(*right) {
	on := func(kind error, then func(ctx context.Context, r *right, req auth.VerifyRequest, err error) (auth.Identity, error)) func(*right) {
		return func(r *right) {
			r.verify = func(ctx context.Context, req auth.VerifyRequest, honest verifier) (auth.Identity, error) {
				id, err := honest(ctx, req)
				if errors.Is(err, kind) {
					return then(ctx, r, req, err)
				}
				return id, err
			}
		}
	}
	return map[string]func(*right){
		"answers UNAUTHENTICATED when the provider is down": on(plugins.ErrUnavailable, func(_ context.Context, _ *right, _ auth.VerifyRequest, _ error) (auth.Identity, error) {
			return auth.Identity{}, plugins.ErrUnauthenticated
		}),
		"accepts what it cannot check": on(plugins.ErrUnavailable, func(_ context.Context, r *right, req auth.VerifyRequest, _ error) (auth.Identity, error) {
			return peek(r, req.Token)
		}),
		"reads documents about another issuer": on(plugins.ErrUnavailable, func(_ context.Context, r *right, req auth.VerifyRequest, err error) (auth.Identity, error) {
			if strings.Contains(err.Error(), "about the issuer") {
				return peek(r, req.Token)
			}
			return auth.Identity{}, err
		}),
		"follows redirects to other hosts": on(plugins.ErrUnavailable, func(_ context.Context, r *right, req auth.VerifyRequest, err error) (auth.Identity, error) {
			if strings.Contains(err.Error(), "redirect") {
				return peek(r, req.Token)
			}
			return auth.Identity{}, err
		}),
		"reads answers of any size": on(plugins.ErrUnavailable, func(_ context.Context, r *right, req auth.VerifyRequest, err error) (auth.Identity, error) {
			if strings.Contains(err.Error(), "is larger") {
				return peek(r, req.Token)
			}
			return auth.Identity{}, err
		}),
		"uses a key that was removed": on(plugins.ErrUnauthenticated, func(_ context.Context, r *right, req auth.VerifyRequest, err error) (auth.Identity, error) {
			if kid := text(part(req.Token, 0), "kid"); strings.Contains(err.Error(), "no key") && strings.HasPrefix(kid, "key-") {
				return peek(r, req.Token)
			}
			return auth.Identity{}, err
		}),
		"asks for keys for each unknown key id": on(plugins.ErrUnauthenticated, func(ctx context.Context, r *right, _ auth.VerifyRequest, err error) (auth.Identity, error) {
			if strings.Contains(err.Error(), "no key") {
				req, _ := http.NewRequestWithContext(ctx, http.MethodGet, r.p.Issuer()+"/oauth2/jwks", nil)
				if resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req); err == nil {
					_ = resp.Body.Close()
				}
			}
			return auth.Identity{}, err
		}),
		"never reads the key set again": func(r *right) {
			var mu sync.Mutex
			known := map[string]bool{}
			r.verify = func(ctx context.Context, req auth.VerifyRequest, honest verifier) (auth.Identity, error) {
				kid := text(part(req.Token, 0), "kid")
				mu.Lock()
				first := len(known) == 0
				unknown := !first && !known[kid]
				mu.Unlock()
				if unknown {
					return auth.Identity{}, plugins.ErrUnauthenticated
				}
				id, err := honest(ctx, req)
				if err == nil {
					mu.Lock()
					known[kid] = true
					mu.Unlock()
				}
				return id, err
			}
		},
		"gives its provider half a second": func(r *right) {
			r.verify = func(ctx context.Context, req auth.VerifyRequest, honest verifier) (auth.Identity, error) {
				ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
				defer cancel()
				return honest(ctx, req)
			}
		},
		"gives up a provider that failed": func(r *right) {
			var failed sync.Map
			r.verify = func(ctx context.Context, req auth.VerifyRequest, honest verifier) (auth.Identity, error) {
				id, err := honest(ctx, req)
				if _, before := failed.Load(1); before {
					return auth.Identity{}, plugins.ErrUnavailable
				}
				if errors.Is(err, plugins.ErrUnavailable) {
					failed.Store(1, true)
				}
				return id, err
			}
		},
		"asks the provider about every token": func(r *right) {
			r.verify = func(ctx context.Context, req auth.VerifyRequest, honest verifier) (auth.Identity, error) {
				id, err := honest(ctx, req)
				if ask, _ := http.NewRequestWithContext(ctx, http.MethodGet, r.p.Issuer()+"/oauth2/jwks", nil); err == nil {
					resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(ask)
					if err != nil {
						return auth.Identity{}, plugins.Unavailable(err)
					}
					_ = resp.Body.Close()
				}
				return id, err
			}
		},
	}
}

// stallLies returns adapters that do not handle deadlines correctly.
func stallLies() map[string]func(*right) {
	return map[string]func(*right){
		"ignores deadlines": func(r *right) {
			r.verify = func(ctx context.Context, req auth.VerifyRequest, honest verifier) (auth.Identity, error) {
				return honest(context.WithoutCancel(ctx), req)
			}
		},
		"verifies one token at a time": func(r *right) {
			one := make(chan struct{}, 1)
			r.verify = func(ctx context.Context, req auth.VerifyRequest, honest verifier) (auth.Identity, error) {
				one <- struct{}{}
				defer func() { <-one }()
				return honest(context.WithoutCancel(ctx), req)
			}
		},
		"shares the failure of the call that came first": func(r *right) {
			var mu sync.Mutex
			var first chan struct{}
			var failure error
			r.verify = func(ctx context.Context, req auth.VerifyRequest, honest verifier) (auth.Identity, error) {
				mu.Lock()
				waits := first
				if waits == nil {
					first = make(chan struct{})
				}
				mine := first
				mu.Unlock()
				if waits != nil {
					select {
					case <-waits:
						mu.Lock()
						defer mu.Unlock()
						if failure != nil {
							return auth.Identity{}, failure
						}
					case <-ctx.Done():
						return auth.Identity{}, plugins.Unavailable(ctx.Err())
					}
					return r.Adapter.Verify(ctx, req)
				}
				id, err := honest(ctx, req)
				mu.Lock()
				defer mu.Unlock()
				failure = err
				close(mine)
				return id, err
			}
		},
		"refuses a token when its time is over": func(r *right) {
			r.verify = func(ctx context.Context, req auth.VerifyRequest, honest verifier) (auth.Identity, error) {
				id, err := honest(ctx, req)
				if ctx.Err() != nil {
					err = plugins.ErrUnauthenticated
				}
				return id, err
			}
		},
	}
}

func documentLies() map[string]func(*right) {
	relays := func(change func(doc map[string]any)) func(*right) {
		return func(r *right) {
			r.metadata = func(_ context.Context, raw json.RawMessage, err error) (json.RawMessage, error) {
				var doc map[string]any
				if err != nil || json.Unmarshal(raw, &doc) != nil {
					return raw, err
				}
				change(doc)
				return json.Marshal(doc)
			}
		}
	}
	return map[string]func(*right){
		"rounds the numbers of metadata": relays(func(map[string]any) {}),
		"names its own token endpoint":   relays(func(doc map[string]any) { doc["token_endpoint"] = "https://adapter.example/token" }),
		"names a host as authorization server": func(r *right) {
			r.describe = func(d auth.Description) auth.Description {
				d.AuthorizationServers = []string{"id.example.com"}
				return d
			}
		},
		"names no RS256": func(r *right) {
			r.describe = func(d auth.Description) auth.Description { d.Algorithms = []string{"PS256"}; return d }
		},
		"names another issuer": func(r *right) { r.describe = func(d auth.Description) auth.Description { d.Issuer += "/"; return d } },
		"has no metadata while the provider is away": func(r *right) {
			r.metadata = func(_ context.Context, raw json.RawMessage, err error) (json.RawMessage, error) {
				if err != nil {
					err = plugins.ErrNotFound
				}
				return raw, err
			}
		},
	}
}

func introspectionLies() map[string]func(*right) {
	return map[string]func(*right){
		"accepts tokens that are not active":           believes("no longer active", always),
		"accepts tokens about another subject":         believes("about another subject", always),
		"refuses tokens that it cannot ask about":      outageLies()["answers UNAUTHENTICATED when the provider is down"],
		"accepts tokens that it cannot ask about":      outageLies()["accepts what it cannot check"],
		"remembers for seconds that a token is active": remembers(5*time.Second, func(r auth.VerifyRequest) string { return r.Token }),
		"asks about a token once and for all others":   remembers(time.Minute, func(r auth.VerifyRequest) string { return text(claimsOf(r.Token), "sub") }),
	}
}
