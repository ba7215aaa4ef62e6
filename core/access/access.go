package access

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/limits"
)

// Users stores users and their workspaces. *store.Store implements it.
type Users interface {
	Provision(ctx context.Context, id core.Identity, sameAs []string) (core.User, error)
	User(ctx context.Context, id string) (core.User, error) // core.CodeNotFound
	Workspaces(ctx context.Context, u core.User) ([]core.Workspace, error)

	// WatchMembers registers changed, which is called with a user's id, "" for all users, after this server has changed
	// the user's rights.
	WatchMembers(changed func(userID string))
}

// Cookies stores logins. *store.Store implements it.
type Cookies interface {
	PutCookie(ctx context.Context, c core.Cookie) error
	Cookie(ctx context.Context, hash string) (core.Cookie, error)
	DeleteCookie(ctx context.Context, hash string) error // nil if there is no such cookie
	ClaimCheck(ctx context.Context, c core.Cookie, pause time.Duration) (claimed bool, err error)
	CookieChecked(ctx context.Context, c core.Cookie) error
	EndLogins(ctx context.Context, keyPrint string) error
}

// Logins stores pending browser logins if the browser may return to a peer server. *store.Store implements it. client
// identifies who started a login. If too many logins are pending, the client with the most loses its oldest. TakeLogin
// returns a login once. After that, and for unknown or expired logins, it returns core.CodeNotFound.
type Logins interface {
	PutLogin(ctx context.Context, state, client string, login json.RawMessage, expires time.Time) error
	TakeLogin(ctx context.Context, state string) (json.RawMessage, error)
}

// Revocations stores the revocations of identity providers. *store.Store implements it.
type Revocations interface {
	Revoke(ctx context.Context, r core.Revocation) error
	Revoked(ctx context.Context, id core.Identity) (bool, error)
}

// Options configure an Access.
type Options struct {
	APIKey      core.Secret // "" means none
	Providers   []Provider  // in the order in which they are tried for a token without a known issuer
	Audiences   []string    // accepted in the tokens of every provider
	Users       Users
	Cookies     Cookies
	Keys        APIKeys
	Enroller    Enroller // required if a provider has enrollment rules
	Logins      Logins   // nil keeps pending logins in memory
	Revocations Revocations
	Logger      hclog.Logger

	// StaleMembership is how long users, memberships, API keys and logins are accepted as last read if the store cannot be
	// read; 0 means not at all.
	StaleMembership time.Duration
}

// Access authenticates callers. It is safe for concurrent use.
type Access struct {
	users          Users
	cookies        Cookies
	log            hclog.Logger
	members        *members
	stale          staleLog
	attempts       *limits.Rates
	proxyAttempts  *limits.Rates                         // attempts through proxies
	invalidBearers *lru.Cache[string, [sha256.Size]byte] // each client's last invalid bearer
	browserLogins  *limits.Rates                         // starts of browser logins
	pending        *pending
	keys           *apiKeys
	watchers       watchers
	revoked        Revocations
	machine        core.Secret // a bearer that proves that the caller owns the server
	machineKey     key

	provisioned *known[provisionedAs, core.User] // read each time; the last result is used only during an outage
	logins      *known[fingerprint, core.Cookie] // likewise
	unrevoked   *known[credential, bool]         // likewise
	rechecks    *rechecks

	enroller Enroller

	swap sync.Mutex           // held while the gate is replaced
	gate atomic.Pointer[gate] // the current settings
}

// New returns an Access, and logs which credentials are accepted. With neither a key nor an adapter it is
// in dev mode, where every caller is the owner. A reload cannot turn dev mode on.
func New(o Options) *Access {
	invalidBearers, _ := lru.New[string, [sha256.Size]byte](maxClients) // the only error is a size below 1
	a := &Access{
		users: o.Users, cookies: o.Cookies, log: o.Logger,
		attempts: limits.NewRates(rate.Every(attemptEvery), attemptBurst), proxyAttempts: limits.NewRates(rate.Every(attemptEvery/proxyFactor), attemptBurst*proxyFactor),
		invalidBearers: invalidBearers,
		browserLogins:  limits.NewRates(rate.Every(browserLoginEvery), browserLoginBurst), pending: newPending(o.Logins),
		revoked: o.Revocations, enroller: o.Enroller,
	}
	a.machine = core.Secret(secret())
	a.machineKey = newKey(a.machine)
	if a.log == nil {
		a.log = hclog.NewNullLogger()
	}
	onStale := func(err error) { a.stale.report(a.log, err) }
	a.members = &members{users: o.Users, known: newKnown[member, []core.Workspace](maxMembers, o.StaleMembership, onStale)}
	a.keys = newAPIKeys(o.Keys, o.StaleMembership, onStale)
	a.provisioned = newKnown[provisionedAs, core.User](maxVerified, o.StaleMembership, onStale)
	a.logins = newKnown[fingerprint, core.Cookie](maxVerified, o.StaleMembership, onStale)
	a.unrevoked = newKnown[credential, bool](maxVerified, o.StaleMembership, onStale)
	a.rechecks = newRechecks()
	g := newGate(newKey(o.APIKey), o.Providers, o.Audiences, o.Enroller)
	g.dev = !g.key.set() && len(o.Providers) == 0
	a.gate.Store(g)
	a.logMode(g)
	o.Users.WatchMembers(a.MembersChanged)
	return a
}

// SetProviders replaces the identity providers and the audiences that are accepted in the tokens of all
// providers; an empty list removes them. When it returns, tokens and logins of removed providers are no longer
// accepted, including those being verified, and the new enrollment rules apply.
func (a *Access) SetProviders(providers []Provider, audiences []string) {
	a.swap.Lock()
	defer a.swap.Unlock()
	g := newGate(a.gate.Load().key, providers, audiences, a.enroller)
	a.gate.Store(g)
	a.logMode(g)
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	if err := a.RetainAdmins(ctx); err != nil { // this server ignores their admin role in any case
		a.log.Error("could not demote the stored admins that auth.admins no longer names", "error", err)
	}
	a.MembersChanged("")
}

// logMode logs which credentials each endpoint accepts.
func (a *Access) logMode(g *gate) {
	switch {
	case g.dev:
		a.log.Warn("dev mode: every caller is the owner; set SERVICE_API_KEY or auth.adapter to require authentication")
	case len(g.providers) == 0 && !g.key.set():
		a.log.Error("every request is refused: the configuration no longer has an API key or an auth adapter; set one, or restart for dev mode")
	case len(g.providers) == 0:
		a.log.Warn("/v1 accepts SERVICE_API_KEY; /mcp accepts API keys made with POST /v1/keys only; set auth.adapter to accept tokens of an identity provider")
	case !g.key.set():
		a.log.Info("/v1 and /mcp accept tokens of the identity provider; SERVICE_API_KEY is not set")
	default:
		a.log.Info("/v1 accepts SERVICE_API_KEY and tokens of the identity provider; /mcp accepts the tokens")
	}
	for _, p := range g.providers {
		if p.anyAudience() {
			a.log.Warn("the audience of tokens is not checked (auth.audience: any): tokens issued for other services are accepted", "provider", p.Name)
		}
	}
}

// Dev reports whether there is no authentication at all.
func (a *Access) Dev() bool { return a.gate.Load().dev }

// BindsTokens reports whether an identity provider checks that a token's sender holds the token's key (DPoP, mTLS).
func (a *Access) BindsTokens() bool { return a.gate.Load().binds }

// API authenticates a caller of /v1 by SERVICE_API_KEY, an API key, a token of an adapter, or a login cookie. If there
// is a bearer, the cookie is ignored, even if the bearer is invalid. Errors are core.CodeUnauthenticated, or
// core.CodeUnavailable if the credentials cannot be checked.
func (a *Access) API(ctx context.Context, bearer, cookie string) (core.Identity, error) {
	g := a.gate.Load()
	switch {
	case g.dev:
		return core.Owner(), nil
	case bearer != "" && (g.key.matches(bearer) || a.machineKey.matches(bearer)):
		return core.Owner(), nil
	case isAPIKey(bearer):
		return a.keyIdentity(ctx, bearer)
	case bearer != "":
		return a.verifyBearer(ctx, bearer, "")
	case cookie != "":
		return a.login(ctx, g, cookie)
	}
	return core.Identity{}, unauthenticated()
}

// OwnerToken returns a bearer that API accepts as the owner's while this Access exists. It is for callers who have
// proven in another way that they own the server.
func (a *Access) OwnerToken() core.Secret { return a.machine }

// MCP authenticates a caller of /mcp by a token of an adapter or an API key; in dev mode everyone is the owner.
// SERVICE_API_KEY is refused and not passed to the adapter. resource is the rest of the path: "" for /mcp, a workspace
// id for /mcp/<workspace>, or "me" for /mcp/me. A token issued for the URL of a workspace, or of /mcp/me, is accepted
// only at that URL.
func (a *Access) MCP(ctx context.Context, bearer, resource string) (core.Identity, error) {
	g := a.gate.Load()
	switch {
	case g.dev:
		return core.Owner(), nil
	case bearer == "" || g.key.matches(bearer) || a.machineKey.matches(bearer):
		return core.Identity{}, unauthenticated()
	case isAPIKey(bearer):
		return a.keyIdentity(ctx, bearer)
	}
	return a.verifyBearer(ctx, bearer, resource)
}

// verifyBearer is like verify, but its result contains the token itself.
func (a *Access) verifyBearer(ctx context.Context, bearer, resource string) (core.Identity, error) {
	id, err := a.verify(ctx, bearer, resource)
	if err == nil {
		id.Bearer = core.Secret(bearer)
	}
	return id, err
}

func unauthenticated() error {
	return core.Errorf(core.CodeUnauthenticated, "authorization required")
}

// unavailable returns the error for credentials that cannot be checked.
func unavailable(cause error) error {
	return core.Wrap(core.CodeUnavailable, cause, "credentials cannot be checked at the moment").WithRetryAfter(2 * time.Second)
}
