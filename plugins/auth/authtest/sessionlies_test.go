package authtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// rechecked is a liar whose CheckSession changes what an honest one answered.
type rechecked struct {
	honest
	change func(ctx context.Context, h honest, req auth.SessionCheck) (auth.Identity, error)
}

func (r rechecked) CheckSession(ctx context.Context, req auth.SessionCheck) (auth.Identity, error) {
	return r.change(ctx, r.honest, req)
}

// confirms is a liar that confirms logins which the honest adapter refuses for a reason.
func confirms(reason string) func(honest) auth.Adapter {
	return rechecks(func(ctx context.Context, h honest, req auth.SessionCheck) (auth.Identity, error) {
		id, err := h.CheckSession(ctx, req)
		if errors.Is(err, plugins.ErrUnauthenticated) && strings.Contains(err.Error(), reason) {
			return auth.Identity{Issuer: h.provider.Issuer(), Subject: req.Subject, Renewal: req.Renewal + " "}, nil
		}
		return id, err
	})
}

func rechecks(change func(ctx context.Context, h honest, req auth.SessionCheck) (auth.Identity, error)) func(honest) auth.Adapter {
	return func(h honest) auth.Adapter { return rechecked{h, change} }
}

// local keeps the renewals of its process and gives their numbers away.
type local struct {
	honest
	mu    sync.Mutex
	known map[string]plugins.Secret
}

func (l *local) keep(id auth.Identity, err error) (auth.Identity, error) {
	if err != nil {
		return id, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	name := fmt.Sprintf("renewal-%d", len(l.known))
	l.known[name] = id.Renewal
	id.Renewal = plugins.Secret(name)
	return id, nil
}

func (l *local) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	return l.keep(l.honest.Exchange(ctx, req))
}

func (l *local) CheckSession(ctx context.Context, req auth.SessionCheck) (auth.Identity, error) {
	l.mu.Lock()
	req.Renewal = l.known[req.Renewal.Reveal()]
	l.mu.Unlock()
	return l.keep(l.honest.CheckSession(ctx, req))
}

// lastLogin answers each check with the login that was checked before, while another check is under way.
type lastLogin struct {
	honest
	mu     sync.Mutex
	inside int
}

func (l *lastLogin) CheckSession(ctx context.Context, req auth.SessionCheck) (auth.Identity, error) {
	l.mu.Lock()
	l.inside++
	busy := l.inside > 1
	l.mu.Unlock()
	defer func() { l.mu.Lock(); l.inside--; l.mu.Unlock() }()
	id, err := l.honest.CheckSession(ctx, req)
	if busy && err == nil {
		id.Subject = "user_before"
	}
	return id, err
}

// exchanges is a liar whose logins differ.
type exchanges struct {
	honest
	change func(*auth.Identity)
}

func (e exchanges) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	id, err := e.honest.Exchange(ctx, req)
	e.change(&id)
	return id, err
}

// hasNoSessions hides the capability and has its methods.
type hasNoSessions struct{ honest }

func sessionLies() []lie {
	const (
		again    = "a login that is still good is confirmed, again and again"
		access   = "a login without a refresh token is confirmed while its access token is good"
		ended    = "a login that the provider ended is not confirmed"
		other    = "a login that is about another subject by now is not confirmed"
		key      = "a login whose key the provider removed is not confirmed"
		nobody   = "a renewal that nobody gave is refused"
		without  = "a login is confirmed without a new id token, and not when it is about another subject"
		newToken = "a login whose new id token is bad is not confirmed"
		away     = "the check of a login is unavailable while the provider is away, and the renewal stays good"
	)
	changesRenewal := func(change func(before, after map[string]any)) func(honest) auth.Adapter {
		return rechecks(func(ctx context.Context, h honest, req auth.SessionCheck) (auth.Identity, error) {
			id, err := h.CheckSession(ctx, req)
			var before, after map[string]any
			if err == nil && json.Unmarshal([]byte(req.Renewal), &before) == nil && json.Unmarshal([]byte(id.Renewal), &after) == nil {
				change(before, after)
				raw, _ := json.Marshal(after)
				id.Renewal = plugins.Secret(raw)
			}
			return id, err
		})
	}
	never := rechecks(func(_ context.Context, h honest, req auth.SessionCheck) (auth.Identity, error) {
		return auth.Identity{Issuer: h.provider.Issuer(), Subject: req.Subject, Renewal: req.Renewal}, nil
	})
	unlike := func(change func(*auth.Identity, auth.SessionCheck)) func(honest) auth.Adapter {
		return rechecks(func(ctx context.Context, h honest, req auth.SessionCheck) (auth.Identity, error) {
			id, err := h.CheckSession(ctx, req)
			if err == nil {
				change(&id, req)
			}
			return id, err
		})
	}
	return []lie{
		{"has the calls and does not declare them", undeclared, func(h honest) auth.Adapter { return hasNoSessions{h} }},
		{"gives the old renewal back", again, unlike(func(id *auth.Identity, req auth.SessionCheck) { id.Renewal = req.Renewal })},
		{"gives no renewal back", again, unlike(func(id *auth.Identity, _ auth.SessionCheck) { id.Renewal = "" })},
		{"gives a renewal of 33 KiB", again, unlike(func(id *auth.Identity, _ auth.SessionCheck) {
			id.Renewal += plugins.Secret(strings.Repeat(" ", 33<<10))
		})},
		{"confirms another subject", again, unlike(func(id *auth.Identity, _ auth.SessionCheck) { id.Subject = "user_bob" })},
		{"confirms for another issuer", again, unlike(func(id *auth.Identity, _ auth.SessionCheck) { id.Issuer += "/" })},
		{"confirms another session", again, unlike(func(id *auth.Identity, _ auth.SessionCheck) { id.SessionID = "another" })},
		{"gives logins no renewal", again, func(h honest) auth.Adapter {
			return exchanges{h, func(id *auth.Identity) { id.Renewal = "" }}
		}},
		{"uses the refresh token of a login once", "a login is confirmed after its access token is over", changesRenewal(func(_, after map[string]any) { delete(after, "refresh") })},
		{"wants a new id token at each check", without, rechecks(func(ctx context.Context, h honest, req auth.SessionCheck) (auth.Identity, error) {
			id, err := h.CheckSession(ctx, req)
			if err == nil && id.ExpiresAt.IsZero() {
				return auth.Identity{}, plugins.ErrUnauthenticated
			}
			return id, err
		})},
		{"does not ask whom a login without a new id token is about", without, confirms("answers about another subject")},
		{"does not compare the audience of new id tokens", newToken, confirms("another audience")},
		{"does not check the signature of new id tokens", newToken, confirms("signature")},
		{"does not look at the time of new id tokens", newToken, confirms("not valid yet")},
		{"asks about the key of the first id token", "a login that was checked with a new key outlives the one it began with", changesRenewal(func(before, after map[string]any) { after["key"] = before["key"] })},
		{"confirms nothing without a refresh token", access, rechecks(func(ctx context.Context, h honest, req auth.SessionCheck) (auth.Identity, error) {
			if !strings.Contains(req.Renewal.Reveal(), "refresh") {
				return auth.Identity{}, plugins.ErrUnauthenticated
			}
			return h.CheckSession(ctx, req)
		})},
		{"confirms without asking", ended, never},
		{"confirms logins whose refresh token is refused", ended, confirms("refresh token")},
		{"confirms logins whose access token is refused", ended, confirms("UserInfo endpoint refuses")},
		{"answers unavailable about ended logins", ended, rechecks(func(ctx context.Context, h honest, req auth.SessionCheck) (auth.Identity, error) {
			id, err := h.CheckSession(ctx, req)
			if errors.Is(err, plugins.ErrUnauthenticated) {
				return auth.Identity{}, plugins.ErrUnavailable
			}
			return id, err
		})},
		{"does not compare the subject of new id tokens", other, confirms("new id token is about another subject")},
		{"does not compare the subject of UserInfo", other, confirms("answers about another subject")},
		{"does not look at the keys", key, confirms("no longer among")},
		{"confirms whatever is no renewal", nobody, confirms("not one of this adapter")},
		{"confirms an empty renewal", nobody, rechecks(func(ctx context.Context, h honest, req auth.SessionCheck) (auth.Identity, error) {
			if req.Renewal == "" {
				return auth.Identity{Issuer: h.provider.Issuer(), Subject: req.Subject, Renewal: "x"}, nil
			}
			return h.CheckSession(ctx, req)
		})},
		{"keeps renewals in its memory", "a renewal is good for another process of the adapter", func(h honest) auth.Adapter {
			return &local{honest: h, known: map[string]plugins.Secret{}}
		}},
		{"refuses logins while the provider is away", away, rechecks(func(ctx context.Context, h honest, req auth.SessionCheck) (auth.Identity, error) {
			id, err := h.CheckSession(ctx, req)
			if errors.Is(err, plugins.ErrUnavailable) {
				return auth.Identity{}, plugins.ErrUnauthenticated
			}
			return id, err
		})},
		{"confirms logins while the provider is away", away, rechecks(func(ctx context.Context, h honest, req auth.SessionCheck) (auth.Identity, error) {
			id, err := h.CheckSession(ctx, req)
			if errors.Is(err, plugins.ErrUnavailable) {
				return auth.Identity{Issuer: h.provider.Issuer(), Subject: req.Subject, Renewal: req.Renewal}, nil
			}
			return id, err
		})},
		{"uses a renewal up and then fails", away, func(h honest) auth.Adapter { return &usesUp{honest: h} }},
		{"waits for its provider without end", "the check of a login returns when its time is over", rechecks(func(ctx context.Context, h honest, req auth.SessionCheck) (auth.Identity, error) {
			long, cancel := context.WithTimeout(context.WithoutCancel(ctx), 6*time.Second)
			defer cancel()
			return h.CheckSession(long, req)
		})},
		{"mixes checks up that come at once", "checks of logins at once are each about their own login", func(h honest) auth.Adapter { return &lastLogin{honest: h} }},
		{"repeats the renewal", "no error of a check repeats the renewal", rechecks(func(ctx context.Context, h honest, req auth.SessionCheck) (auth.Identity, error) {
			id, err := h.CheckSession(ctx, req)
			if err != nil {
				err = fmt.Errorf("%w: %s", err, req.Renewal.Reveal())
			}
			return id, err
		})},
		{"repeats the refresh token", "no error of a check repeats the renewal", rechecks(func(ctx context.Context, h honest, req auth.SessionCheck) (auth.Identity, error) {
			id, err := h.CheckSession(ctx, req)
			var inside struct{ Refresh string }
			if err != nil && json.Unmarshal([]byte(req.Renewal.Reveal()), &inside) == nil {
				err = fmt.Errorf("%w: %s", err, inside.Refresh)
			}
			return id, err
		})},
		{"keeps no session of a login", "a login has the session that logout tokens name", func(h honest) auth.Adapter {
			return exchanges{h, func(id *auth.Identity) { id.SessionID = "" }}
		}},
	}
}

// usesUp refuses a renewal that it could not ask the provider about.
type usesUp struct {
	honest
	mu   sync.Mutex
	used map[plugins.Secret]bool
}

func (u *usesUp) CheckSession(ctx context.Context, req auth.SessionCheck) (auth.Identity, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.used[req.Renewal] {
		return auth.Identity{}, plugins.ErrUnauthenticated
	}
	if u.used == nil {
		u.used = map[plugins.Secret]bool{}
	}
	id, err := u.honest.CheckSession(ctx, req)
	u.used[req.Renewal] = errors.Is(err, plugins.ErrUnavailable)
	return id, err
}
