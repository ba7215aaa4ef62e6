package pluginhost

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// Auth is an auth adapter in its own process. It implements auth.Adapter and auth.Login. While the plugin is
// unavailable, every method returns plugins.ErrUnavailable, so it fails closed. Close it when it is no longer
// used.
type Auth struct{ *slot[auth.Adapter] }

var (
	_ auth.Login    = Auth{}
	_ auth.Revoker  = Auth{}
	_ auth.Sessions = Auth{}
)

// Auth starts a configured auth adapter, as open does.
func (h *Host) Auth(ctx context.Context, p config.Plugin, old ...*Auth) (*Auth, error) {
	s, err := open(ctx, h, kind[auth.Adapter]{plugins.KindAuth, auth.Clients(), func(ctx context.Context, a auth.Adapter) error {
		_, err := a.Describe(ctx) // does not contact the provider, because cached verdicts remain valid while the provider is unavailable
		return err
	}}, p, old)
	if err != nil {
		return nil, err
	}
	return &Auth{s}, nil
}

// Describe implements auth.Adapter.
func (a Auth) Describe(ctx context.Context) (auth.Description, error) {
	return ask(ctx, a.call, func(ctx context.Context, adapter auth.Adapter) (auth.Description, error) {
		return adapter.Describe(ctx)
	})
}

// Verify implements auth.Adapter.
func (a Auth) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	return ask(ctx, a.call, func(ctx context.Context, adapter auth.Adapter) (auth.Identity, error) {
		return adapter.Verify(ctx, req)
	})
}

// Metadata implements auth.Adapter.
func (a Auth) Metadata(ctx context.Context) (json.RawMessage, error) {
	return ask(ctx, a.call, func(ctx context.Context, adapter auth.Adapter) (json.RawMessage, error) { return adapter.Metadata(ctx) })
}

// AuthorizeURL implements auth.Login. It returns plugins.ErrUnimplemented if the adapter has no browser login.
func (a Auth) AuthorizeURL(ctx context.Context, req auth.AuthorizeRequest) (string, error) {
	return ask(ctx, a.call, capable[auth.Login, auth.Adapter](func(ctx context.Context, login auth.Login) (string, error) {
		return login.AuthorizeURL(ctx, req)
	}))
}

// Exchange implements auth.Login. It returns plugins.ErrUnimplemented if the adapter has no browser login. A
// code can be exchanged only once, so unlike most methods it is never retried.
func (a Auth) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	return ask(ctx, a.once, capable[auth.Login, auth.Adapter](func(ctx context.Context, login auth.Login) (auth.Identity, error) {
		return login.Exchange(ctx, req)
	}))
}

// CheckSession implements auth.Sessions. It returns plugins.ErrUnimplemented if the adapter does not recheck with the
// provider. A renewal token can be used only once, so this call is never retried.
func (a Auth) CheckSession(ctx context.Context, req auth.SessionCheck) (auth.Identity, error) {
	return ask(ctx, a.once, capable[auth.Sessions, auth.Adapter](func(ctx context.Context, sessions auth.Sessions) (auth.Identity, error) {
		return sessions.CheckSession(ctx, req)
	}))
}

// VerifyLogout implements auth.Sessions. It returns plugins.ErrUnimplemented if the adapter does not support
// logout tokens.
func (a Auth) VerifyLogout(ctx context.Context, token string) (auth.Logout, error) {
	return ask(ctx, a.call, capable[auth.Sessions, auth.Adapter](func(ctx context.Context, sessions auth.Sessions) (auth.Logout, error) {
		return sessions.VerifyLogout(ctx, token)
	}))
}

// Revokes reports whether the adapter declares that it reports revocations.
func (a Auth) Revokes() bool { return declares[auth.Revoker](a.slot, plugins.CapabilityRevocations) }

// VerifiesRequests reports whether the adapter declares that it checks tokens against their request.
func (a Auth) VerifiesRequests() bool {
	return declares[auth.RequestVerifier](a.slot, plugins.CapabilityVerifyRequest)
}

// Watch implements auth.Revoker. It ends with the process on which it was started. Unlike calls, it is not waited for
// when that process is replaced.
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
