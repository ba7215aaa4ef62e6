package access

import (
	"context"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ropewalk/ropewalk/core"
)

// APIKeys stores API keys by the hash of their text. *store.Store implements it.
type APIKeys interface {
	APIKey(ctx context.Context, hash string) (core.APIKey, error)
	APIKeys(ctx context.Context, workspace, userID string) ([]core.APIKey, error)
	APIKeyUsed(ctx context.Context, id string, at time.Time) error
}

const (
	keyCacheLife = 10 * time.Second
	badKeyLife   = 2 * time.Second // also how long a key that was created on a peer server may be unknown here
	usedEvery    = 5 * time.Minute
)

// apiKeys caches the verdicts about API keys.
type apiKeys struct {
	store APIKeys
	known *known[fingerprint, core.APIKey]
	bad   *lru.Cache[fingerprint, time.Time] // strings that are not keys, and how long to assume so
}

func newAPIKeys(store APIKeys, stale time.Duration, onStale func(error)) *apiKeys {
	bad, _ := lru.New[fingerprint, time.Time](maxRefused) // the only error is a size below 1
	return &apiKeys{store: store, known: newKnown[fingerprint, core.APIKey](maxVerified, stale, onStale), bad: bad}
}

// forget drops the verdicts about the keys of a user, "" for all users, and about all strings that were not keys,
// because one of them may now be a key.
func (k *apiKeys) forget(userID string) {
	k.known.forget(func(_ fingerprint, key core.APIKey) bool { return userID == "" || key.User.ID == userID })
	k.bad.Purge()
}

// find returns the key with the given text, or core.CodeUnauthenticated if there is none.
func (k *apiKeys) find(ctx context.Context, text string) (core.APIKey, error) {
	hash := fingerprintOf(text)
	if until, ok := k.bad.Get(hash); ok && time.Now().Before(until) {
		return core.APIKey{}, unauthenticated()
	}
	since := k.known.change()
	key, err := k.known.get(ctx, hash, keyCacheLife, func(ctx context.Context) (core.APIKey, error) {
		return k.store.APIKey(ctx, hash.String())
	})
	switch {
	case core.CodeOf(err) == core.CodeNotFound:
		if k.known.change() == since {
			k.bad.Add(hash, time.Now().Add(badKeyLife))
		}
		return core.APIKey{}, unauthenticated()
	case err != nil:
		return core.APIKey{}, unavailable(err)
	case !key.ExpiresAt.IsZero() && !time.Now().Before(key.ExpiresAt):
		return core.APIKey{}, unauthenticated()
	}
	return key, nil
}

// isAPIKey reports whether a bearer has the form of an API key.
func isAPIKey(bearer string) bool { return strings.HasPrefix(bearer, core.APIKeyPrefix) }

// keyIdentity authenticates an API key. The identity acts as the key's user, only in the key's workspace, and
// with the organization role that the key states if the user still has it.
func (a *Access) keyIdentity(ctx context.Context, bearer string) (core.Identity, error) {
	if len(bearer) > maxCookie {
		return core.Identity{}, unauthenticated()
	}
	key, err := a.keys.find(ctx, bearer)
	if err != nil {
		return core.Identity{}, err
	}
	if a.gate.Load().isForgotten(ctx, key.Issuers) {
		a.log.Warn("API key refused: its creator's identity provider is not configured", "key", key.ID, "user", key.User.ID, "issuers", key.Issuers)
		return core.Identity{}, unauthenticated()
	}
	if now := time.Now(); now.Sub(key.LastUsedAt) > usedEvery {
		a.recordUse(ctx, bearer, key, now)
	}
	if key.User, err = a.gate.Load().retained(ctx, key.User); err != nil {
		return core.Identity{}, err
	}
	id := core.Identity{
		Issuer: core.IssuerKey, Subject: key.ID, User: key.User,
		Scope: core.Scope{Key: key.ID, Workspace: key.Workspace, Role: key.Role, OrgRole: key.OrgRole, Accounts: key.Accounts, View: key.View, Surface: key.Surface, UserRole: key.User.OrgRole},
	}
	id.User.OrgRole = id.Scope.RoleOf(key.User.OrgRole)
	return id, nil
}

// recordUse records the time of a key's last use. If that fails, the recorded time is merely too old.
func (a *Access) recordUse(ctx context.Context, bearer string, key core.APIKey, now time.Time) {
	if err := a.keys.store.APIKeyUsed(ctx, key.ID, now); err != nil {
		a.log.Debug("could not record the use of an API key", "key", key.ID, "error", err)
		return
	}
	a.keys.known.update(fingerprintOf(bearer), func(k *core.APIKey) { k.LastUsedAt = now })
}
