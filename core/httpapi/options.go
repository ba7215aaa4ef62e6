package httpapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"net/netip"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/hashicorp/go-hclog"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/event"
	"github.com/ropewalk/ropewalk/core/httpapi/accountapi"
	"github.com/ropewalk/ropewalk/core/httpapi/adminapi"
	"github.com/ropewalk/ropewalk/core/httpapi/appapi"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/httpapi/chatapi"
	"github.com/ropewalk/ropewalk/core/httpapi/listener"
	"github.com/ropewalk/ropewalk/core/httpapi/login"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/people"
	"github.com/ropewalk/ropewalk/core/stream"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// Access authenticates callers. Its errors are core.Errors.
type Access interface {
	authn.Access
	login.Access

	// MCP authenticates a caller of /mcp. resource is the rest of the path.
	MCP(ctx context.Context, bearer, resource string) (core.Identity, error)

	Dev() bool
	BindsTokens() bool // whether an identity provider issues tokens that need proof of possession (DPoP, mTLS)
	Workspaces(ctx context.Context, id core.Identity) ([]core.Workspace, error)
}

// Apps manages the installed apps.
type Apps interface {
	appapi.Apps
	Health(workspace string) []core.AppHealth
}

// Chat runs conversations with a model. Its errors are core.Errors.
type Chat interface {
	chatapi.Chat
	adminapi.Models
	appapi.Models
	Model(ctx context.Context) (string, error)
	Instructions(ctx context.Context, c core.Caller) (string, error)
	SetInstructions(ctx context.Context, c core.Caller, text string) error
	Recent(ctx context.Context, c core.Caller) ([]core.Conversation, error)
}

// Events publishes the events of workspaces.
type Events interface {
	Subscribe(workspace, user string) *event.Subscription
}

// Features reports whether a feature flag is on.
type Features interface{ Enabled(flag string) bool }

// State is the store for everything that must outlive the server process.
type State interface {
	CheckWritable(ctx context.Context) error // the error is core.CodeUnavailable with the reason
}

// Options configure a Server. Access, Apps, Tools, Accounts, People, Views, Features, Pins, Approvals, Events, Chat,
// Metrics, Registries, AuditTrail, Settings, Plugins and Logger are required.
type Options struct {
	Access     Access
	Apps       Apps
	Tools      appapi.Tools
	Accounts   accountapi.Accounts
	People     *people.Directory
	Views      adminapi.Views
	Features   Features
	Pins       appapi.Pins
	Approvals  appapi.Approvals
	Events     Events
	Chat       Chat
	State      State // whose problems GET /v1/health reports; may be nil
	Metrics    Metrics
	Registries adminapi.Registries
	Logger     hclog.Logger
	Version    string
	Audit      Auditor             // nil records nothing
	AuditTrail adminapi.AuditTrail // read by GET /v1/audit
	Settings   func() []config.Value
	Plugins    func() []adminapi.Plugin

	// Mounts add routes outside /v1. Their errors are written like all others.
	Mounts []func(Router)
	// RespondIfDisabled responds in place of a mount that is switched off, whatever the request's method. It reports
	// whether it did. Nil means that no mount is ever switched off.
	RespondIfDisabled func(*fasthttp.RequestCtx) bool
	Streams           *stream.Streams // shared with the mounts; nil creates a new one
	MaxBody           int             // bytes per body outside /v1; 0 means 16 MiB

	Landing bool        // whether to serve a small page at /, for servers without the console
	Login   func() bool // whether browsers can log in with an identity provider; nil means never

	AllowedOrigins []string       // ALLOWED_ORIGINS: scheme://host[:port], lower case
	AllowedHosts   []string       // Host values accepted in dev mode in addition to loopback ones; host or host:port
	TrustedProxies []netip.Prefix // their X-Forwarded-For and X-Forwarded-Proto are trusted
	BaseURL        string         // the public address, whose pages are treated as this server's own; "" means the address that the client used
	RedirectURI    string         // where an identity provider sends the browser; "" derives it from the request

	TLS                *tls.Config // nil serves HTTP without TLS
	MaxConns           int         // concurrent connections; 0 derives it from the file descriptor limit
	MaxConnsPerAddress int         // per client address, except trusted proxies; 0 means no limit

	Checks        []Check       // the checks behind /readyz
	ShutdownDelay time.Duration // how long Shutdown serves requests before the listener closes
	Limits        *limits.Limits
	AccessLog     bool            // whether to log each request at level info; LogRequests changes it
	Tracer        *tracing.Tracer // traces every request; nil traces none
	MaxAPIBody    int             // bytes per body under /v1; 0 means 1 MiB
	BodyBudget    int64           // bytes that the large bodies of in-flight requests may use; 0 means no limit

	Timeouts Timeouts
}

// Timeouts are the timeouts and intervals of the server. A field that is 0 gets the default noted next to it.
type Timeouts struct {
	Header time.Duration // for a request's headers: 10 s
	Body   time.Duration // for a request's body: 60 s
	Write  time.Duration // for a client to read a response: 60 s; event streams have their own timeout
	Idle   time.Duration // between two requests on one connection: 255 s
	Quiet  time.Duration // between keep-alive comments of a chat stream: 15 s

	Recheck time.Duration // between checks of the credentials of an event or log stream: 30 s
}

const (
	maxBody        = 1 << 20  // under /v1
	maxImport      = 16 << 20 // for POST /v1/conversations/import
	maxChat        = 15 << 20 // for POST /v1/chat: 10 MiB of attachments as base64, and the message
	maxMountedBody = 16 << 20 // outside /v1, unless Options.MaxBody is set
	maxHeaders     = 16 << 10 // bytes for the request line and headers, and the size of each connection's buffer; more is a 431
)

func (o *Options) setDefaults() {
	if o.Streams == nil {
		o.Streams = stream.New(o.Logger)
	}
	if o.RespondIfDisabled == nil {
		o.RespondIfDisabled = func(*fasthttp.RequestCtx) bool { return false }
	}
	if o.Login == nil {
		o.Login = func() bool { return false }
	}
	o.MaxConns = cmp.Or(o.MaxConns, listener.DefaultMaxConns())
	o.MaxAPIBody = cmp.Or(o.MaxAPIBody, maxBody)
	o.MaxBody = cmp.Or(o.MaxBody, maxMountedBody)
	t := &o.Timeouts
	t.Header = cmp.Or(t.Header, 10*time.Second)
	t.Body = cmp.Or(t.Body, 60*time.Second)
	t.Write = cmp.Or(t.Write, 60*time.Second)
	t.Idle = cmp.Or(t.Idle, 255*time.Second)
	t.Quiet = cmp.Or(t.Quiet, 15*time.Second)
	t.Recheck = cmp.Or(t.Recheck, 30*time.Second)
}

// Router is where a mount registers its routes. The alias lets package server handle mounts without importing Fiber.
type Router = fiber.Router
