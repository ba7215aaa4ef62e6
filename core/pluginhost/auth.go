package pluginhost

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// Auth is an auth adapter in its own process. It is an auth.Adapter and an auth.Login; while the
// plugin is away every method is plugins.ErrUnavailable, so it fails closed. Close it when nobody
// uses it any more.
type Auth struct{ *slot[auth.Adapter] }

var (
	_ auth.Login    = Auth{}
	_ auth.Revoker  = Auth{}
	_ auth.Sessions = Auth{}
)

// Auth starts a configured auth adapter. Wrong settings are a *plugins.ConfigError, everything
// else that keeps it from starting a *StartError. Handles of old are those that the caller closes when the new
// one is in use; see exclusive.go for what happens to them.
func (h *Host) Auth(ctx context.Context, a config.Auth, old ...*Auth) (*Auth, error) {
	t, err := h.find(plugins.KindAuth, a.Plugin)
	if err != nil {
		return nil, err
	}
	t.label = cmp.Or(a.Name, a.Adapter)
	var slots []*slot[auth.Adapter]
	for _, other := range old {
		slots = append(slots, other.slot)
	}
	s, err := load(ctx, h, t, contract[auth.Adapter]{newClient: clientOf(t, auth.Clients()), harmless: func(ctx context.Context, a auth.Adapter) error {
		_, err := a.Describe(ctx) // without the provider: while that is away, verdicts that are cached still count
		return err
	}}, slots)
	if err != nil {
		return nil, err
	}
	return &Auth{s}, nil
}

// Describe is auth.Adapter's.
func (a Auth) Describe(ctx context.Context) (d auth.Description, err error) {
	err = a.call(ctx, func(ctx context.Context, adapter auth.Adapter) error {
		d, err = adapter.Describe(ctx)
		return err
	})
	return d, err
}

// Verify is auth.Adapter's.
func (a Auth) Verify(ctx context.Context, req auth.VerifyRequest) (id auth.Identity, err error) {
	err = a.call(ctx, func(ctx context.Context, adapter auth.Adapter) error {
		id, err = adapter.Verify(ctx, req)
		return err
	})
	return id, err
}

// Metadata is auth.Adapter's.
func (a Auth) Metadata(ctx context.Context) (doc json.RawMessage, err error) {
	err = a.call(ctx, func(ctx context.Context, adapter auth.Adapter) error {
		doc, err = adapter.Metadata(ctx)
		return err
	})
	return doc, err
}

// AuthorizeURL is auth.Login's; plugins.ErrUnimplemented when the adapter has no browser login.
func (a Auth) AuthorizeURL(ctx context.Context, req auth.AuthorizeRequest) (url string, err error) {
	err = a.call(ctx, func(ctx context.Context, adapter auth.Adapter) error {
		login, ok := adapter.(auth.Login)
		if !ok {
			return plugins.ErrUnimplemented
		}
		url, err = login.AuthorizeURL(ctx, req)
		return err
	})
	return url, err
}

// Exchange is auth.Login's; plugins.ErrUnimplemented when the adapter has no browser login. A code is
// good for one exchange, so unlike every other method it is never retried.
func (a Auth) Exchange(ctx context.Context, req auth.ExchangeRequest) (id auth.Identity, err error) {
	err = a.once(ctx, func(ctx context.Context, adapter auth.Adapter) error {
		login, ok := adapter.(auth.Login)
		if !ok {
			return plugins.ErrUnimplemented
		}
		id, err = login.Exchange(ctx, req)
		return err
	})
	return id, err
}

// CheckSession is auth.Sessions'; plugins.ErrUnimplemented when the adapter does not ask the provider again.
// A renewal is good for one check, so it is never retried.
func (a Auth) CheckSession(ctx context.Context, req auth.SessionCheck) (id auth.Identity, err error) {
	err = a.once(ctx, func(ctx context.Context, adapter auth.Adapter) error {
		sessions, ok := adapter.(auth.Sessions)
		if !ok {
			return plugins.ErrUnimplemented
		}
		id, err = sessions.CheckSession(ctx, req)
		return err
	})
	return id, err
}

// VerifyLogout is auth.Sessions'; plugins.ErrUnimplemented when the adapter takes no logout tokens.
func (a Auth) VerifyLogout(ctx context.Context, token string) (l auth.Logout, err error) {
	err = a.call(ctx, func(ctx context.Context, adapter auth.Adapter) error {
		sessions, ok := adapter.(auth.Sessions)
		if !ok {
			return plugins.ErrUnimplemented
		}
		l, err = sessions.VerifyLogout(ctx, token)
		return err
	})
	return l, err
}

// Revokes reports whether the adapter declares that it reports revocations.
func (a Auth) Revokes() bool {
	return a.has(plugins.CapabilityRevocations, func(adapter auth.Adapter) bool {
		_, revokes := adapter.(auth.Revoker)
		return revokes
	})
}

// VerifiesRequests reports whether the adapter declares that it checks tokens against their request.
func (a Auth) VerifiesRequests() bool {
	return a.has(plugins.CapabilityVerifyRequest, func(adapter auth.Adapter) bool {
		_, verifies := adapter.(auth.RequestVerifier)
		return verifies
	})
}

// Watch is auth.Revoker's. It lasts as long as the process that it was made on, and is not among the
// calls that a process which is replaced may finish.
func (a Auth) Watch(ctx context.Context, revoked func(auth.Revocation) error) error {
	g, err := a.acquire(ctx)
	if err != nil {
		return err
	}
	g.slot.release(g)
	revoker, ok := g.client.(auth.Revoker)
	if !ok {
		return plugins.ErrUnimplemented
	}
	return a.secrets.redactError(revoker.Watch(ctx, revoked))
}
