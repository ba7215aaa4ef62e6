package access

import (
	"context"
	"fmt"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins"
)

// watchers holds functions that are called when a user's rights change, to close what the user may no longer use.
type watchers struct {
	mu  sync.Mutex
	all map[int]func(userID string)
	id  int
}

// WatchRevocations calls changed with a user's id, "" for all users, whenever the user's credentials, roles or
// memberships may have changed, here or on a peer server. changed must not block. The receiver then calls Current or
// authenticates again.
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

// Current returns a caller that was authenticated some time ago, with its current roles and groups. The error is
// core.CodeUnauthenticated if the user or the API key is gone, or if the token or its subject was revoked. It is
// core.CodeWorkspaceDenied if the user is no longer a member, and core.CodeUnavailable if this cannot be determined.
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
	id.User.OrgRole, id.User.Groups, id.Scope.UserRole = user.OrgRole, user.Groups, user.OrgRole
	if id.Scope.Key != "" {
		id.User.OrgRole = id.Scope.RoleOf(user.OrgRole)
	}
	now, err := a.Caller(ctx, id, c.Workspace.ID)
	now.View = c.View
	return now, err
}

// Revoke ends everything that depends on a subject, a token or a session of an identity provider, on all
// servers: cached verdicts, logins, sessions and streams. This server's cache is cleared even if Revoke
// returns an error. If the provider's message was used before, the error is core.CodeConflict and nothing ends.
func (a *Access) Revoke(ctx context.Context, r core.Revocation) error {
	forget := func() {
		a.unrevoked.forget(func(c credential, _ bool) bool { return c.issuer == r.Issuer })
		a.gate.Load().forgetIf(func(id core.Identity) bool { return isRevokedBy(id, r) })
	}
	forget()
	err := a.revoked.Revoke(ctx, r)
	switch {
	case core.CodeOf(err) == core.CodeConflict:
		return err
	case err != nil:
		return unavailable(err)
	}
	forget() // drops what was verified in the meantime as well
	if r.Subject == "" {
		a.TokenRevoked(r.Token + r.Session)
	}
	return nil
}

// isRevokedBy reports whether a revocation applies to an identity.
func isRevokedBy(id core.Identity, r core.Revocation) bool {
	switch {
	case id.Issuer != r.Issuer:
		return false
	case r.Subject != "":
		return id.Subject == r.Subject && (r.Session == "" || id.Session == "" || id.Session == r.Session)
	}
	return r.Token != "" && id.Token == r.Token || r.Session != "" && id.Session == r.Session
}

// TokenRevoked drops everything cached about a token or a session of a provider, given its hash, and ends the sessions
// and streams that started with it. Call it when a peer server has recorded the revocation.
func (a *Access) TokenRevoked(hash string) {
	a.unrevoked.forget(func(credential, bool) bool { return true })
	a.gate.Load().forgetIf(func(id core.Identity) bool { return id.Token == hash || id.Session == hash })
	a.watchers.notify("")
}

// credential holds the parts of an identity that can be revoked.
type credential struct{ issuer, subject, session, token string }

// refuseRevoked returns an error if an identity's token, session or subject was revoked. While the store cannot be
// read, the last result is used.
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

// ForgetVerdicts drops all cached verdicts of the auth adapters, and ends streams if their credentials are no
// longer accepted. Call it when revocations may have been lost.
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
