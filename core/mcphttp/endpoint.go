package mcphttp

import (
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/stream"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/core/webguard"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// Tools is the namespace that callers see and use. *tools.Namespace implements it and documents the methods.
type Tools interface {
	ListFor(c core.Caller, from tools.From) []tools.Listed
	ItemsFor(c core.Caller, from tools.From, kind core.Kind) []tools.Item
	ListJSON(c core.Caller, from tools.From, kind core.Kind) json.RawMessage
	Missing(c core.Caller) []core.MissingApp
	Instructions(c core.Caller) []core.Instructions
	Call(ctx context.Context, c core.Caller, call tools.Call) (result json.RawMessage, failed bool, err error)
	Tasks
	Called(call tools.Call) (tool string)
	GetPrompt(ctx context.Context, c core.Caller, q tools.Request) (json.RawMessage, error)
	ReadResource(ctx context.Context, c core.Caller, q tools.Request) (json.RawMessage, error)
	Complete(ctx context.Context, c core.Caller, q tools.Request) (json.RawMessage, error)
	ListSkills(ctx context.Context, c core.Caller, q tools.Request) (json.RawMessage, error)
	GetSkill(ctx context.Context, c core.Caller, q tools.Request) (json.RawMessage, error)
	WatchLists(workspace string, changed func(core.Kind)) (stop func())
	WatchViews(workspace string, changed func()) (stop func())
	Narrowed(c core.Caller) bool
	SurfaceFor(c core.Caller) tools.Surface
	Open(c core.Caller, o tools.SessionOptions) *tools.Session
	Mirrors(c core.Caller, from tools.From, tool string) []core.Mirror
}

// Access authenticates callers and describes the authorization server. Its errors are core.Errors: CodeUnauthenticated,
// CodeWorkspaceDenied, CodeUnavailable, and CodeNotFound from Describe and Metadata if there is no auth adapter.
type Access interface {
	Dev() bool
	MCP(ctx context.Context, bearer, resource string) (core.Identity, error)
	Caller(ctx context.Context, id core.Identity, workspace string) (core.Caller, error)
	Current(ctx context.Context, c core.Caller) (core.Caller, error) // an earlier caller with their current rights
	Describe(ctx context.Context) (auth.Description, error)
	Metadata(ctx context.Context) (json.RawMessage, error)
}

// Views reports which views an address can contain.
type Views interface {
	Has(workspace, name string) bool
}

// Features reports whether a feature flag is on.
type Features interface{ Enabled(flag string) bool }

// Metrics measures client requests.
type Metrics interface {
	// ServerOperation records a request. code is the code of its JSON-RPC error, or 0; failed reports whether its result
	// is a tool failure.
	ServerOperation(method, revision string, code int64, failed bool, took time.Duration)
}

// Options configure an Endpoint. Tools, Access, Store, Features and Logger are required.
type Options struct {
	Tools    Tools
	Access   Access
	Store    sessionstore.Store
	Features Features
	Logger   hclog.Logger
	Views    Views           // nil for none
	Metrics  Metrics         // nil measures nothing
	Limits   *limits.Limits  // the users' shares of tool calls; shared with the HTTP API; nil limits nothing
	Streams  *stream.Streams // shared with the server this is mounted on; nil creates a new one

	MaxSessions int           // live sessions of this process; 0 means 100
	MaxPerUser  int           // live sessions per user; 0 means no limit
	SessionTTL  time.Duration // idle time after which a session ends; 0 means 8 hours
	MaxBody     int           // bytes per request body; 0 means 4 MiB
	OwnBodies   bool          // bodies have their own memory, which outlives the request, as in httpapi

	TrustedProxies []netip.Prefix  // their X-Forwarded-Proto is trusted
	AllowedHosts   []string        // Host values accepted in addition to loopback ones; host or host:port
	AllowedOrigins []string        // Origin values accepted in addition to the endpoint's own
	BaseURL        string          // the public address; "" means the address the client used
	Version        string          // the server's version, for serverInfo
	Scopes         func() []string // the scopes that clients should request from the authorization server; nil means none
	Replica        string          // prefix of session IDs, for a proxy to route by; "" for a single server

	identifyEvery time.Duration // how often the caller of a long-lived stream is identified again; 0 means every 4 minutes
}

// Endpoint serves /mcp. It is safe for concurrent use.
type Endpoint struct {
	o         Options
	log       hclog.Logger
	guard     *webguard.Policy
	self      json.RawMessage // this server's identity: serverInfo
	live      *sessionSet
	writer    *sessionWriter
	lease     *serverLease
	moving    sessionLocks // held per session while it moves from or to another server
	hub       *hub
	documents *documents
	standing  openStreams
	workers   workers
	timers    sync.Pool                 // holds *time.Timer values
	changed   atomic.Pointer[time.Time] // when any user's access last changed; nil if never

	root    context.Context // the parent of every call's context; ends with Close
	stop    context.CancelFunc
	running sync.WaitGroup // goroutines that run until root ends
	closing closing
}

// New returns an Endpoint, which serves once it is mounted. It runs goroutines until Close.
func New(o Options) *Endpoint {
	o.MaxSessions = cmp.Or(o.MaxSessions, 100)
	o.SessionTTL = cmp.Or(o.SessionTTL, 8*time.Hour)
	o.MaxBody = cmp.Or(o.MaxBody, 4<<20)
	o.identifyEvery = cmp.Or(o.identifyEvery, identifyInterval)
	if o.Scopes == nil {
		o.Scopes = func() []string { return nil }
	}
	if o.Streams == nil {
		o.Streams = stream.New(o.Logger)
	}
	e := &Endpoint{o: o, log: o.Logger, guard: policy(o)}
	e.workers = newWorkers(e.run)
	e.timers.New = newTimer
	e.root, e.stop = context.WithCancel(context.Background())
	e.self, _ = json.Marshal(e.implementation()) // strings always encode
	e.live = newSessionSet(o.MaxSessions, o.MaxPerUser)
	e.writer = newSessionWriter(o.Store, o.SessionTTL, o.Logger)
	e.lease = &serverLease{writer: e.writer}
	e.hub = &hub{tools: o.Tools, watches: map[string]*watch{}}
	e.documents = &documents{access: o.Access}
	e.running.Go(func() { e.writer.Run(e.root, e.live.Records) })
	e.running.Go(e.keepLease)
	return e
}

// policy returns the rules for Host, Origin and proxies that the options define.
func policy(o Options) *webguard.Policy {
	return &webguard.Policy{
		Dev: o.Access.Dev(), Hosts: o.AllowedHosts, Origins: o.AllowedOrigins, TrustedProxies: o.TrustedProxies, BaseURL: o.BaseURL,
	}
}

// Mount registers /mcp and the discovery documents. Headers that outer middleware sets before the handler runs are sent
// with every response, including streams.
func (e *Endpoint) Mount(r fiber.Router) {
	r.All("/mcp", e.serve)
	r.All("/mcp/:workspace", e.serve)
	r.All("/mcp/:workspace/v/:view", e.serve)
	r.Get("/.well-known/oauth-protected-resource", e.protectedResource)
	r.Get("/.well-known/oauth-authorization-server", e.authorizationServer)
	for _, resource := range []string{"/mcp", "/mcp/:workspace", "/mcp/:workspace/v/:view"} {
		r.Get("/.well-known/oauth-protected-resource"+resource, e.protectedResource)
		r.Get("/.well-known/oauth-authorization-server"+resource, e.authorizationServer) // clients of revision 2025-03-26 look here
	}
}

// UseStore replaces the session store. It first writes every live session to the new store. If that fails, the old
// store remains in use.
func (e *Endpoint) UseStore(ctx context.Context, store sessionstore.Store) error {
	if err := e.writer.Swap(ctx, store, e.live.Records); err != nil {
		return err
	}
	e.renewLease(ctx)
	return nil
}

// Sessions returns the number of live sessions in this process.
func (e *Endpoint) Sessions() int { return len(e.live.All()) }

// Close refuses new work immediately, lets in-flight calls finish until ctx ends, and then ends every session and
// stream. Session records remain in the store. Another server, or this one after a restart, takes the sessions over
// or, if the store does not support that, reports `unavailable` instead of `not_found`.
func (e *Endpoint) Close(ctx context.Context) error {
	e.live.Refuse()
	err := e.live.Drain(ctx)
	for _, s := range e.live.All() {
		if e.live.Remove(s) {
			e.closeSession(s, sessionClosed)
		}
	}
	e.stop()
	e.running.Wait()
	e.closing.wait()
	e.writer.Flush(ctx)
	e.lease.Release(ctx)
	return err
}

// closing closes the tools' side of sessions in the background, because apps may be slow to clean up after a session.
type closing struct {
	mu      sync.Mutex
	waiting bool // wait was called; from now on, start closes sessions itself, not in the background
	running sync.WaitGroup
}

// start starts closing a session.
func (n *closing) start(s *tools.Session) {
	n.mu.Lock()
	if n.waiting {
		n.mu.Unlock()
		closeTools(s)
		return
	}
	n.running.Add(1)
	n.mu.Unlock()
	go func() {
		defer n.running.Done()
		closeTools(s)
	}()
}

// wait waits until every session passed to start is closed.
func (n *closing) wait() {
	n.mu.Lock()
	n.waiting = true
	n.mu.Unlock()
	n.running.Wait()
}

// closeTools closes a session now. Notifying the apps may take up to gateTimeout, even while the endpoint shuts down.
func closeTools(s *tools.Session) {
	ctx, cancel := context.WithTimeout(context.Background(), gateTimeout)
	defer cancel()
	s.Close(ctx)
}
