package access

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
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

	mu      sync.Mutex // guards changes against a look-up that began before them
	changes uint64
	known   *lru.Cache[fingerprint, keyVerdict]
}

type keyVerdict struct {
	key   core.APIKey
	good  bool
	until time.Time
}

func newAPIKeys(store APIKeys) *apiKeys {
	known, _ := lru.New[fingerprint, keyVerdict](maxVerified) // the only error is a size below 1
	return &apiKeys{store: store, known: known}
}

// forget drops all verdicts: a change of one user's rights is rare enough.
func (k *apiKeys) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changes++
	k.known.Purge()
}

// find returns the key with a text: core.CodeUnauthenticated when there is none.
func (k *apiKeys) find(ctx context.Context, text string) (core.APIKey, error) {
	hash := fingerprintOf(text)
	if v, ok := k.known.Get(hash); ok && time.Now().Before(v.until) {
		return v.verdict()
	}
	k.mu.Lock()
	since := k.changes
	k.mu.Unlock()
	key, err := k.store.APIKey(ctx, hash.String())
	if err != nil && core.CodeOf(err) != core.CodeNotFound {
		return core.APIKey{}, unavailable(err)
	}
	v := keyVerdict{key: key, good: err == nil, until: time.Now().Add(badKeyLife)}
	if v.good {
		v.until = time.Now().Add(keyCacheLife)
		if !key.ExpiresAt.IsZero() && key.ExpiresAt.Before(v.until) {
			v.until = key.ExpiresAt
		}
	}
	k.mu.Lock()
	if since == k.changes {
		k.known.Add(hash, v)
	}
	k.mu.Unlock()
	return v.verdict()
}

func (v keyVerdict) verdict() (core.APIKey, error) {
	if !v.good {
		return core.APIKey{}, unauthenticated()
	}
	return v.key, nil
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
		Scope: core.Scope{Workspace: key.Workspace, Role: key.Role, UserRole: key.User.OrgRole},
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
	key.LastUsedAt = now
	a.keys.mu.Lock()
	defer a.keys.mu.Unlock()
	hash := fingerprintOf(bearer)
	if v, ok := a.keys.known.Peek(hash); ok && v.good {
		v.key = key
		a.keys.known.Add(hash, v)
	}
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
