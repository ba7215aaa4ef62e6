package access

import (
	"context"
	"fmt"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins"
)

// watchers are notified when the rights of a user change, so that they close what the user may no longer use.
type watchers struct {
	mu  sync.Mutex
	all map[int]func(userID string)
	id  int
}

// WatchRevocations calls changed with a user's id, "" for all users, whenever the credentials, the
// membership or a role of the user may have changed, here or on a peer server. It must not block. The
// receiver then asks Current, or authenticates again.
func (a *Access) WatchRevocations(changed func(userID string)) (stop func()) {
	w := &a.watchers
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = make(map[int]func(string))
	}
	w.id++
	id := w.id
	w.all[id] = changed
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, id)
	}
}

func (w *watchers) notify(userID string) {
	w.mu.Lock()
	all := make([]func(string), 0, len(w.all))
	for _, changed := range w.all {
		all = append(all, changed)
	}
	w.mu.Unlock()
	for _, changed := range all {
		changed(userID)
	}
}

// Current returns a caller, who was authenticated some time ago, with the roles that it has now. The error is
// core.CodeUnauthenticated when the user or the API key is gone, or the token or its subject was revoked,
// core.CodeWorkspaceDenied when the user is no member any more, or core.CodeUnavailable when that cannot be determined.
func (a *Access) Current(ctx context.Context, c core.Caller) (core.Caller, error) {
	if a.Dev() {
		return c, nil
	}
	if c.Issuer == core.IssuerKey {
		if err := a.keyExists(ctx, c); err != nil {
			return core.Caller{}, err
		}
	}
	if a.revoked != nil && c.Token != "" {
		switch revoked, err := a.revoked.Revoked(ctx, c.Identity); {
		case err != nil:
			return core.Caller{}, unavailable(err)
		case revoked:
			return core.Caller{}, unauthenticated()
		}
	}
	user, err := a.users.User(ctx, c.User.ID)
	switch {
	case core.CodeOf(err) == core.CodeNotFound:
		return core.Caller{}, unauthenticated()
	case err != nil:
		return core.Caller{}, unavailable(err)
	}
	if user, err = a.gate.Load().retained(ctx, user); err != nil {
		return core.Caller{}, err
	}
	id := c.Identity
	id.User.OrgRole, id.Scope.UserRole = user.OrgRole, user.OrgRole
	if id.Scope.Key != "" {
		id.User.OrgRole = id.Scope.RoleOf(user.OrgRole)
	}
	return a.Caller(ctx, id, c.Workspace.ID)
}

// Revoke ends everything that rests on a subject, a token or a session of an identity provider, on all
// servers: what is cached about it, logins, sessions and streams. What is cached here ends also when the
// error is not nil. A message of the provider that was used before is core.CodeConflict and ends nothing.
func (a *Access) Revoke(ctx context.Context, r core.Revocation) error {
	forget := func() {
		a.unrevoked.forget(func(c credential, _ bool) bool { return c.issuer == r.Issuer })
		a.gate.Load().forgetIf(func(id core.Identity) bool { return restsOn(id, r) })
	}
	forget()
	err := a.revoked.Revoke(ctx, r)
	switch {
	case core.CodeOf(err) == core.CodeConflict:
		return err
	case err != nil:
		return unavailable(err)
	}
	forget() // what was verified meanwhile
	if r.Subject == "" {
		a.TokenRevoked(r.Token + r.Session)
	}
	return nil
}

// restsOn reports whether an identity rests on what is revoked.
func restsOn(id core.Identity, r core.Revocation) bool {
	switch {
	case id.Issuer != r.Issuer:
		return false
	case r.Subject != "":
		return id.Subject == r.Subject && (r.Session == "" || id.Session == "" || id.Session == r.Session)
	}
	return r.Token != "" && id.Token == r.Token || r.Session != "" && id.Session == r.Session
}

// TokenRevoked drops what is cached about a token or a session of a provider, by its hash, and has sessions
// and streams end that began with it. Call it when a peer server has recorded the revocation.
func (a *Access) TokenRevoked(hash string) {
	a.unrevoked.forget(func(credential, bool) bool { return true })
	a.gate.Load().forgetIf(func(id core.Identity) bool { return id.Token == hash || id.Session == hash })
	a.watchers.notify("")
}

// credential is what may be revoked of an identity.
type credential struct{ issuer, subject, session, token string }

// refuseRevoked returns an error when what an identity rests on was revoked. While the store cannot be read,
// what was read before counts.
func (a *Access) refuseRevoked(ctx context.Context, id core.Identity) error {
	if a.revoked == nil {
		return nil
	}
	revoked, err := a.unrevoked.get(ctx, credential{id.Issuer, id.Subject, id.Session, id.Token}, 0, func(ctx context.Context) (bool, error) {
		return a.revoked.Revoked(ctx, id)
	})
	if err == nil && revoked {
		err = fmt.Errorf("the token, its session or its subject was revoked: %w", plugins.ErrUnauthenticated)
	}
	return err
}

// ForgetVerdicts drops all verdicts of the auth adapter that are cached, and has streams end whose
// credentials it no longer accepts. Call it when revocations may have been lost.
func (a *Access) ForgetVerdicts() {
	a.gate.Load().forgetIf(func(core.Identity) bool { return true })
	a.watchers.notify("")
}

func (a *Access) keyExists(ctx context.Context, c core.Caller) error {
	all, err := a.keys.store.APIKeys(ctx, c.Scope.Workspace, c.User.ID)
	if err != nil {
		return unavailable(err)
	}
	for _, k := range all {
		if k.ID == c.Subject {
			return nil
		}
	}
	return unauthenticated()
}
