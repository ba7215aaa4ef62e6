package access

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// Users is what is kept of people and their workspaces. *store.Store is one.
type Users interface {
	Provision(ctx context.Context, id core.Identity) (core.User, error)
	Workspaces(ctx context.Context, u core.User) ([]core.Workspace, error)
}

// Cookies is what is kept of logins. *store.Store is one.
type Cookies interface {
	PutCookie(ctx context.Context, c store.Cookie) error
	Cookie(ctx context.Context, hash string) (store.Cookie, error)
	DeleteCookie(ctx context.Context, hash string) error
	EndLogins(ctx context.Context, keyPrint string) error
}

// Logins is what is kept of browser logins under way, where the browser may come back to another
// server. *store.Store is one. Of any number of takers one gets a login; the others, and those of one
// that is unknown or has expired, get core.CodeNotFound.
type Logins interface {
	PutLogin(ctx context.Context, state string, login json.RawMessage, expires time.Time) error
	TakeLogin(ctx context.Context, state string) (json.RawMessage, error)
}

// Options is what Access starts from.
type Options struct {
	APIKey      core.Secret  // "" means none
	Adapter     auth.Adapter // nil means none
	Audiences   []string     // accepted in tokens, beside the adapter's own
	AnyAudience bool         // accept every audience
	Users       Users
	Cookies     Cookies
	Logins      Logins // nil keeps them in memory
	Logger      hclog.Logger
}

// Access decides who is calling. It is safe for concurrent use.
type Access struct {
	users    Users
	cookies  Cookies
	log      hclog.Logger
	members  *members
	attempts *attempts
	pending  *pending

	swap sync.Mutex           // held while the gate is replaced
	gate atomic.Pointer[gate] // what counts now
}

// New makes an Access, and logs which doors are open. With neither a key nor an adapter it is in
// dev mode, where everybody is the owner: only New can bring that about, no reload can.
func New(o Options) *Access {
	a := &Access{
		users: o.Users, cookies: o.Cookies, log: o.Logger,
		members: newMembers(o.Users), attempts: newAttempts(), pending: newPending(o.Logins),
	}
	if a.log == nil {
		a.log = hclog.NewNullLogger()
	}
	g := newGate(newKey(o.APIKey), o.Adapter, o.Audiences, o.AnyAudience)
	g.dev = !g.key.set() && o.Adapter == nil
	a.gate.Store(g)
	a.announce(g)
	return a
}

// SetAdapter swaps the auth adapter and what it is asked for; nil takes it away. From its return
// on, tokens and logins that count by the old one alone count no more, those being verified at
// this moment included.
func (a *Access) SetAdapter(adapter auth.Adapter, audiences []string, anyAudience bool) {
	a.swap.Lock()
	defer a.swap.Unlock()
	g := newGate(a.gate.Load().key, adapter, audiences, anyAudience)
	a.gate.Store(g)
	a.announce(g)
}

// announce says in the log which credentials open which door.
func (a *Access) announce(g *gate) {
	switch {
	case g.dev:
		a.log.Warn("Dev mode: everybody who reaches this server is its owner. Set SERVICE_API_KEY or auth.adapter to require a login.")
	case g.adapter == nil && !g.key.set():
		a.log.Error("Every request is refused: the configuration has neither an API key nor an auth adapter any more. Set one, or restart for dev mode.")
	case g.adapter == nil:
		a.log.Warn("The API takes the API key. /mcp refuses every request: it takes tokens of an identity provider only; set auth.adapter in the configuration to open it.")
	case !g.key.set():
		a.log.Info("The API and /mcp take the identity provider's tokens; SERVICE_API_KEY is not set.")
	default:
		a.log.Info("The API takes the API key and the identity provider's tokens; /mcp takes the tokens.")
	}
	if g.adapter != nil && g.anyAudience() {
		a.log.Warn("The audience of tokens is not checked, because auth.audience is any: tokens issued for other services are accepted.")
	}
}

// Dev reports whether there is no authentication at all.
func (a *Access) Dev() bool { return a.gate.Load().dev }

// API says who calls /v1: the holder of the key, of the adapter's token, or of a login cookie. A
// bearer is read before the cookie, and a wrong one is not made good by a cookie. Errors are
// core.CodeUnauthenticated, or core.CodeUnavailable when it cannot be told.
func (a *Access) API(ctx context.Context, bearer, cookie string) (core.Identity, error) {
	g := a.gate.Load()
	switch {
	case g.dev:
		return core.Owner(), nil
	case bearer != "" && g.key.matches(bearer):
		return core.Owner(), nil
	case bearer != "":
		return a.verify(ctx, bearer)
	case cookie != "":
		return a.login(ctx, g, cookie)
	}
	return core.Identity{}, unauthenticated()
}

// MCP says who calls /mcp: in dev mode the owner, else the holder of the adapter's token. The API
// key opens nothing here (spec part 5), and is not shown to the adapter either.
func (a *Access) MCP(ctx context.Context, bearer string) (core.Identity, error) {
	g := a.gate.Load()
	switch {
	case g.dev:
		return core.Owner(), nil
	case bearer == "" || g.key.matches(bearer):
		return core.Identity{}, unauthenticated()
	}
	return a.verify(ctx, bearer)
}

func unauthenticated() error {
	return core.Errorf(core.CodeUnauthenticated, "authorization required")
}

// unavailable is the answer while it cannot be told who calls: never an acceptance.
func unavailable(cause error) error {
	return core.Wrap(core.CodeUnavailable, cause, "it cannot be checked at the moment who is calling").WithRetryAfter(2 * time.Second)
}
