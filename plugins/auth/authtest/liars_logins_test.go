package authtest_test

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// ends accepts logins that the honest adapter rejects for this reason.
func ends(reason string) func(*right) {
	return func(r *right) {
		r.exchange = func(ctx context.Context, req auth.ExchangeRequest, honest exchanger) (auth.Identity, error) {
			id, err := honest(ctx, req)
			if err != nil && strings.Contains(err.Error(), reason) {
				return auth.Identity{Issuer: r.p.Issuer(), Subject: "user_1", ExpiresAt: time.Now().Add(time.Minute)}, nil
			}
			return id, err
		}
	}
}

func loginLies() map[string]func(*right) {
	loggedIn := func(change func(id *auth.Identity)) func(*right) {
		return func(r *right) {
			r.exchange = func(ctx context.Context, req auth.ExchangeRequest, honest exchanger) (auth.Identity, error) {
				id, err := honest(ctx, req)
				change(&id)
				return id, err
			}
		}
	}
	return map[string]func(*right){
		"loses the query of the provider's endpoint": func(r *right) {
			r.address = func(address string) string { return strings.Replace(address, "tenant=", "x=", 1) }
		},
		"does not look at the nonce":           ends("nonce"),
		"takes id tokens for any audience":     ends("another audience"),
		"takes id tokens of other clients":     ends("another client"),
		"does without an id token":             ends("no id token"),
		"takes id tokens signed by anybody":    ends("signature"),
		"ends logins whose code was refused":   ends("refused the code"),
		"ends logins while it cannot ask":      ends("endpoint failed"),
		"takes the role of UserInfo":           loggedIn(func(id *auth.Identity) { id.OrgRole = "owner" }),
		"names everybody's address at a login": loggedIn(func(id *auth.Identity) { id.Email = "user_1@example.com" }),
		"keeps no session of a login":          loggedIn(func(id *auth.Identity) { id.SessionID = "" }),
		"cuts the state at 512 bytes": func(r *right) {
			r.url = func(a auth.AuthorizeRequest) auth.AuthorizeRequest {
				a.State = a.State[:min(len(a.State), 512)]
				return a
			}
		},
		"comes back to where its settings say": func(r *right) {
			r.url = func(a auth.AuthorizeRequest) auth.AuthorizeRequest { a.RedirectURI = ""; return a }
		},
		"repeats the code in errors": func(r *right) {
			r.exchange = func(ctx context.Context, req auth.ExchangeRequest, honest exchanger) (auth.Identity, error) {
				id, err := honest(ctx, req)
				if err != nil {
					err = errors.Join(err, errors.New("code="+url.QueryEscape(req.Code)))
				}
				return id, err
			}
		},
		"keeps one nonce at a time": func(r *right) {
			var mu sync.Mutex
			nonce := ""
			r.url = func(a auth.AuthorizeRequest) auth.AuthorizeRequest {
				mu.Lock()
				defer mu.Unlock()
				nonce = a.Nonce
				return a
			}
			r.exchange = func(ctx context.Context, req auth.ExchangeRequest, honest exchanger) (auth.Identity, error) {
				mu.Lock()
				req.Nonce = nonce
				mu.Unlock()
				return honest(ctx, req)
			}
		},
	}
}

func renewalLies() map[string]func(*right) {
	confirms := func(reason string) func(*right) {
		return func(r *right) {
			r.check = func(ctx context.Context, req auth.SessionCheck, honest checker) (auth.Identity, error) {
				id, err := honest(ctx, req)
				if err != nil && strings.Contains(err.Error(), reason) {
					return auth.Identity{Issuer: r.p.Issuer(), Subject: req.Subject, Renewal: req.Renewal}, nil
				}
				return id, err
			}
		}
	}
	confirmed := func(change func(id *auth.Identity, req auth.SessionCheck)) func(*right) {
		return func(r *right) {
			r.check = func(ctx context.Context, req auth.SessionCheck, honest checker) (auth.Identity, error) {
				id, err := honest(ctx, req)
				change(&id, req)
				return id, err
			}
		}
	}
	return map[string]func(*right){
		"confirms logins that the provider ended": confirms("refuses the refresh token"),
		"confirms logins about another subject":   confirms("another subject"),
		"confirms logins whose key was removed":   confirms("no longer has the key"),
		"confirms whatever is no renewal":         confirms("not from this adapter"),
		"confirms logins while it cannot ask":     confirms("endpoint failed"),
		"takes new id tokens signed by anybody":   confirms("signature"),
		"gives the old renewal back":              confirmed(func(id *auth.Identity, req auth.SessionCheck) { id.Renewal = req.Renewal }),
		"gives no renewal back":                   confirmed(func(id *auth.Identity, _ auth.SessionCheck) { id.Renewal = "" }),
		"confirms another session":                confirmed(func(id *auth.Identity, _ auth.SessionCheck) { id.SessionID = "another" }),
		"ends logins while it cannot ask": func(r *right) {
			r.check = func(ctx context.Context, req auth.SessionCheck, honest checker) (auth.Identity, error) {
				id, err := honest(ctx, req)
				if errors.Is(err, plugins.ErrUnavailable) {
					err = plugins.ErrUnauthenticated
				}
				return id, err
			}
		},
		"logs renewals": func(r *right) {
			r.check = func(ctx context.Context, req auth.SessionCheck, honest checker) (auth.Identity, error) {
				_, _ = io.WriteString(r.out, "check "+req.Renewal.Reveal()+"\n")
				return honest(ctx, req)
			}
		},
		"keeps renewals in its memory": func(r *right) {
			known := sync.Map{}
			r.exchange = func(ctx context.Context, req auth.ExchangeRequest, honest exchanger) (auth.Identity, error) {
				id, err := honest(ctx, req)
				known.Store(id.Subject, id.Renewal)
				id.Renewal = plugins.Secret("the-renewal-of-" + id.Subject)
				return id, err
			}
			r.check = func(ctx context.Context, req auth.SessionCheck, honest checker) (auth.Identity, error) {
				kept, _ := known.Load(strings.TrimPrefix(req.Renewal.Reveal(), "the-renewal-of-"))
				given := req.Renewal
				req.Renewal, _ = kept.(plugins.Secret)
				id, err := honest(ctx, req)
				if err == nil {
					known.Store(id.Subject, id.Renewal)
					id.Renewal = given
				}
				return id, err
			}
		},
	}
}

func logoutLies() map[string]func(*right) {
	takes := func(reason string) func(*right) {
		return func(r *right) {
			r.logout = func(_ context.Context, token string, l auth.Logout, err error) (auth.Logout, error) {
				if c := claimsOf(token); err != nil && strings.Contains(err.Error(), reason) {
					return auth.Logout{Issuer: r.p.Issuer(), Subject: text(c, "sub"), SessionID: text(c, "sid"), TokenID: text(c, "jti"), ExpiresAt: time.Now()}, nil
				}
				return l, err
			}
		}
	}
	changed := func(change func(l *auth.Logout, err *error)) func(*right) {
		return func(r *right) {
			r.logout = func(_ context.Context, _ string, l auth.Logout, err error) (auth.Logout, error) {
				change(&l, &err)
				return l, err
			}
		}
	}
	return map[string]func(*right){
		"ends sessions of other clients":             takes("another client"),
		"ends sessions by tokens without an event":   takes("no logout event"),
		"ends sessions by tokens with a nonce":       takes("has a nonce"),
		"ends sessions by tokens that have expired":  takes("has expired"),
		"ends sessions by tokens without a jti":      takes("no jti"),
		"does not check signatures of logout tokens": takes("signature"),
		"always names a session":                     changed(func(l *auth.Logout, _ *error) { l.SessionID += "x" }),
		"makes identifiers of its own":               changed(func(l *auth.Logout, _ *error) { l.TokenID = "1" }),
		"refuses logout tokens whose key it cannot read": changed(func(_ *auth.Logout, err *error) {
			if errors.Is(*err, plugins.ErrUnavailable) {
				*err = plugins.ErrUnauthenticated
			}
		}),
		"takes a logout token once": func(r *right) {
			var used sync.Map
			r.logout = func(_ context.Context, token string, l auth.Logout, err error) (auth.Logout, error) {
				if _, before := used.LoadOrStore(token, true); before {
					return auth.Logout{}, plugins.ErrUnauthenticated
				}
				return l, err
			}
		},
	}
}
