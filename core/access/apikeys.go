package access

import (
	"context"
	"crypto/rand"
	"strings"
	"time"
	"unicode/utf8"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ropewalk/ropewalk/core"
)

// APIKeys stores API keys by the hash of their text. *store.Store implements it.
type APIKeys interface {
	CreateAPIKey(ctx context.Context, k core.APIKey, hash string) (core.APIKey, error)
	APIKey(ctx context.Context, hash string) (core.APIKey, error)
	APIKeys(ctx context.Context, workspace, userID string) ([]core.APIKey, error)
	DeleteAPIKey(ctx context.Context, workspace, userID, id string) (owner string, err error)
	APIKeyUsed(ctx context.Context, id string, at time.Time) error
}

const (
	keyPrefix    = "rwk_" // tells an API key from other bearers
	maxKeyName   = 100    // characters
	keyCacheLife = 10 * time.Second
	badKeyLife   = 2 * time.Second // also how long a key made on a peer server may be unknown here
	usedEvery    = 5 * time.Minute
)

// apiKeys caches the verdicts about API keys.
type apiKeys struct {
	store APIKeys
	known *known[fingerprint, core.APIKey]
	bad   *lru.Cache[fingerprint, time.Time] // texts that are not keys, and until when that holds
}

func newAPIKeys(store APIKeys, stale time.Duration, onStale func(error)) *apiKeys {
	bad, _ := lru.New[fingerprint, time.Time](maxRefused) // the only error is a size below 1
	return &apiKeys{store: store, known: newKnown[fingerprint, core.APIKey](maxVerified, stale, onStale), bad: bad}
}

// forget drops the verdicts about the keys of a user, "" of all users, and about all texts that were not
// keys: one of them may be one now.
func (k *apiKeys) forget(userID string) {
	k.known.forget(func(_ fingerprint, key core.APIKey) bool { return userID == "" || key.User.ID == userID })
	k.bad.Purge()
}

// find returns the key with a text: core.CodeUnauthenticated when there is none.
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
func isAPIKey(bearer string) bool { return strings.HasPrefix(bearer, keyPrefix) }

// keyIdentity authenticates an API key. The identity acts as the key's user, without the user's role
// in the organization, and only in the key's workspace.
func (a *Access) keyIdentity(ctx context.Context, bearer string) (core.Identity, error) {
	if len(bearer) > maxCookie {
		return core.Identity{}, unauthenticated()
	}
	key, err := a.keys.find(ctx, bearer)
	if err != nil {
		return core.Identity{}, err
	}
	if now := time.Now(); now.Sub(key.LastUsedAt) > usedEvery {
		a.recordUse(ctx, bearer, key, now)
	}
	id := core.Identity{
		Issuer: core.IssuerKey, Subject: key.ID, User: key.User,
		Scope: core.Scope{Key: key.ID, Workspace: key.Workspace, Role: key.Role, UserRole: key.User.OrgRole},
	}
	id.User.OrgRole = core.RoleMember
	return id, nil
}

// recordUse keeps the time of a key's last use. A failure only makes that time older than it is.
func (a *Access) recordUse(ctx context.Context, bearer string, key core.APIKey, now time.Time) {
	if err := a.keys.store.APIKeyUsed(ctx, key.ID, now); err != nil {
		a.log.Debug("the use of an API key was not recorded", "key", key.ID, "error", err)
		return
	}
	a.keys.known.update(fingerprintOf(bearer), func(k *core.APIKey) { k.LastUsedAt = now })
}

// NewKey describes an API key to make.
type NewKey struct {
	Name      string
	Role      core.Role // "" means member
	ExpiresAt time.Time // zero means never
}

// CreateKey makes an API key for the caller in the caller's workspace and returns it with its text,
// which is never shown again. core.CodeBadRequest for a wrong field; core.CodeForbidden for a role
// above the caller's, and for callers who use an API key themselves: a key must not outlive itself.
func (a *Access) CreateKey(ctx context.Context, c core.Caller, k NewKey) (core.APIKey, core.Secret, error) {
	if k.Role == "" {
		k.Role = core.RoleMember
	}
	k.Name = strings.TrimSpace(k.Name)
	n := utf8.RuneCountInString(k.Name)
	switch {
	case n == 0 || n > maxKeyName:
		return core.APIKey{}, "", core.Errorf(core.CodeBadRequest, "name must have 1 to %d characters", maxKeyName)
	case k.Role != core.RoleAdmin && k.Role != core.RoleMember:
		return core.APIKey{}, "", core.Errorf(core.CodeBadRequest, "role must be admin or member")
	case !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(time.Now()):
		return core.APIKey{}, "", core.Errorf(core.CodeBadRequest, "expiresAt must be in the future")
	case c.Issuer == core.IssuerKey:
		return core.APIKey{}, "", core.Errorf(core.CodeForbidden, "an API key cannot make API keys; log in to make one")
	case k.Role == core.RoleAdmin && !c.Workspace.Role.Admin():
		return core.APIKey{}, "", core.Errorf(core.CodeForbidden, "a key with the role admin needs the role admin in workspace %s", c.Workspace.ID)
	}
	text := keyPrefix + rand.Text() + rand.Text()
	made, err := a.keys.store.CreateAPIKey(ctx, core.APIKey{
		Name: k.Name, User: c.User, Workspace: c.Workspace.ID, Role: k.Role, ExpiresAt: k.ExpiresAt,
	}, fingerprintOf(text).String())
	if err != nil {
		return core.APIKey{}, "", err
	}
	a.log.Info("API key created", "key", made.ID, "name", made.Name, "workspace", made.Workspace, "role", string(made.Role), "user", c.User.ID)
	return made, core.Secret(text), nil
}

// Keys returns the API keys of the caller's workspace: all for its admins, their own for others.
func (a *Access) Keys(ctx context.Context, c core.Caller) ([]core.APIKey, error) {
	return a.keys.store.APIKeys(ctx, c.Workspace.ID, keyOwner(c))
}

// RevokeKey ends an API key, with its sessions and streams, on all servers. core.CodeNotFound unless
// the caller may see it.
func (a *Access) RevokeKey(ctx context.Context, c core.Caller, id string) error {
	owner, err := a.keys.store.DeleteAPIKey(ctx, c.Workspace.ID, keyOwner(c), id)
	if err != nil {
		return err
	}
	a.log.Info("API key revoked", "key", id, "workspace", c.Workspace.ID, "user", c.User.ID)
	a.MembersChanged(owner)
	return nil
}

// keyOwner is whose keys the caller manages; "" means those of everyone.
func keyOwner(c core.Caller) string {
	if c.Workspace.Role.Admin() {
		return ""
	}
	return c.User.ID
}
