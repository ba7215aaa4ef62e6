package access

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// Users is what is kept of people and their workspaces. *store.Store is one.
type Users interface {
	Provision(ctx context.Context, id core.Identity) (core.User, error)
	Workspaces(ctx context.Context, userID string) ([]core.Workspace, error)
}

// Cookies is what is kept of logins. *store.Store is one.
type Cookies interface {
	PutCookie(ctx context.Context, c store.Cookie) error
	Cookie(ctx context.Context, hash string) (store.Cookie, error)
	DeleteCookie(ctx context.Context, hash string) error
}

// Options is what Access starts from.
type Options struct {
	APIKey      core.Secret  // "" means none
	Adapter     auth.Adapter // nil means none
	Audiences   []string     // accepted in tokens, beside the adapter's own
	AnyAudience bool         // accept every audience
	Users       Users
	Cookies     Cookies
	Logger      hclog.Logger
}

// Access decides who is calling. It is safe for concurrent use.
type Access struct{}

// New makes an Access, and logs which doors are open.
func New(o Options) *Access { return &Access{} }

// Dev reports whether there is no authentication at all.
func (a *Access) Dev() bool { return false }

// API says who calls /v1: the holder of the key, of a cookie, or of the adapter's token. The
// bearer is read before the cookie.
func (a *Access) API(ctx context.Context, bearer, cookie string) (core.Identity, error) {
	panic("unfinished")
}

// MCP says who calls /mcp: in dev mode everyone, else the holder of the adapter's token.
func (a *Access) MCP(ctx context.Context, bearer string) (core.Identity, error) { panic("unfinished") }

// AllowLogin charges one login attempt to a client (its address): core.CodeRateLimited with
// RetryAfter when it made too many. Call it before Login.
func (a *Access) AllowLogin(client string) error { panic("unfinished") }

// Login trades the API key for a cookie token.
func (a *Access) Login(ctx context.Context, key string) (string, error) { panic("unfinished") }

// Logout ends a login.
func (a *Access) Logout(ctx context.Context, token string) error { panic("unfinished") }

// LoginStart is a browser login under way.
type LoginStart struct {
	URL     string // where to send the browser
	Binding string // to keep in a short-lived HttpOnly cookie of that browser, and hand to FinishLogin
}

// LoginAnswer is what came back with the browser.
type LoginAnswer struct {
	State   string
	Code    string
	Binding string
}

// BeginLogin starts a browser login. returnTo is a path of this server.
func (a *Access) BeginLogin(ctx context.Context, redirectURI, returnTo string) (LoginStart, error) {
	panic("unfinished")
}

// FinishLogin ends a browser login and returns the cookie token and the path to go on to.
func (a *Access) FinishLogin(ctx context.Context, answer LoginAnswer) (token, returnTo string, err error) {
	panic("unfinished")
}

// Caller puts an identity into a workspace; "" is the only or default one.
func (a *Access) Caller(ctx context.Context, id core.Identity, workspace string) (core.Caller, error) {
	panic("unfinished")
}

// Workspaces returns the workspaces of an identity, the default one first.
func (a *Access) Workspaces(ctx context.Context, id core.Identity) ([]core.Workspace, error) {
	panic("unfinished")
}

// MembersChanged forgets what is remembered of a user's workspaces; "" forgets all users'.
func (a *Access) MembersChanged(userID string) { panic("unfinished") }

// SetAdapter swaps the auth adapter: from its return on, tokens of the old one count no more.
func (a *Access) SetAdapter(adapter auth.Adapter) { panic("unfinished") }

// Describe returns what the auth adapter is set up for; core.CodeNotFound without one.
func (a *Access) Describe(ctx context.Context) (auth.Description, error) { panic("unfinished") }

// Metadata returns the provider's RFC 8414 document; core.CodeNotFound without one.
func (a *Access) Metadata(ctx context.Context) (json.RawMessage, error) { panic("unfinished") }
