package mcphttp

import (
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
	"github.com/ropewalk/ropewalk/core/mcphttp/session"
	"github.com/ropewalk/ropewalk/core/stream"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/core/webguard"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// Tools is the namespace that callers see and use. Its methods are tools.Namespace's.
type Tools interface {
	ListFor(c core.Caller, from tools.From) []tools.Listed
	ItemsFor(c core.Caller, from tools.From, kind core.Kind) []tools.Item
	ListJSON(c core.Caller, from tools.From, kind core.Kind) json.RawMessage
	Instructions(c core.Caller) []core.Instructions
	Call(ctx context.Context, c core.Caller, call tools.Call) (result json.RawMessage, failed bool, err error)
	Called(call tools.Call) (tool string)
	GetPrompt(ctx context.Context, c core.Caller, q tools.Request) (json.RawMessage, error)
	ReadResource(ctx context.Context, c core.Caller, q tools.Request) (json.RawMessage, error)
	Complete(ctx context.Context, c core.Caller, q tools.Request) (json.RawMessage, error)
	WatchLists(workspace string, changed func(core.Kind)) (stop func())
	WatchViews(workspace string, changed func()) (stop func())
	Narrowed(c core.Caller) bool
	Open(c core.Caller, o tools.SessionOptions) *tools.Session
	Mirrors(c core.Caller, from tools.From, tool string) []core.Mirror
}

// Access says who is calling, and what an authorization server must know. Its errors are
// core.Errors: CodeUnauthenticated, CodeWorkspaceDenied, CodeUnavailable, and CodeNotFound from
// Describe and Metadata when there is no auth adapter.
type Access interface {
	Dev() bool
	MCP(ctx context.Context, bearer, resource string) (core.Identity, error)
	Caller(ctx context.Context, id core.Identity, workspace string) (core.Caller, error)
	Current(ctx context.Context, c core.Caller) (core.Caller, error) // a caller of earlier, as it is now
	Describe(ctx context.Context) (auth.Description, error)
	Metadata(ctx context.Context) (json.RawMessage, error)
}

// Views knows the views of workspaces that an address can name.
type Views interface {
	Has(workspace, name string) bool
}

// Features answers whether a feature flag is on.
type Features interface{ Enabled(flag string) bool }

// Metrics measures the requests of clients.
type Metrics interface {
	// ServerOperation records a request: the code of its JSON-RPC error, 0 for none, and whether its result
	// says that a tool failed.
	ServerOperation(method, revision string, code int64, failed bool, took time.Duration)
}

// Options is what an Endpoint is made of. Tools, Access, Store, Features and Logger are required.
type Options struct {
	Tools    Tools
	Access   Access
	Store    sessionstore.Store
	Features Features
	Logger   hclog.Logger
	Views    Views           // nil for none
	Metrics  Metrics         // nil measures nothing
	Limits   *limits.Limits  // the shares of users in tool calls, shared with the HTTP API; nil limits nothing
	Streams  *stream.Streams // shared with the server this is mounted on; nil makes one

	MaxSessions int           // live sessions of this process; 0 means 100
	MaxPerUser  int           // of MaxSessions, those of one user; 0 means no limit
	SessionTTL  time.Duration // idle time after which a session ends; 0 means 8 hours
	MaxBody     int           // bytes of one request body; 0 means 4 MiB
	OwnBodies   bool          // bodies come in memory of their own, which outlives the request, as httpapi's do

	Surface        string          // of clients that do not choose one; "" is tools.SurfaceFull
	TrustedProxies []netip.Prefix  // whose X-Forwarded-Proto counts
	AllowedHosts   []string        // Host values accepted in addition to loopback ones; host or host:port
	AllowedOrigins []string        // Origin values accepted in addition to the endpoint's own
	BaseURL        string          // the public address; "" means as the client connected
	Version        string          // of the server, for serverInfo
	Scopes         func() []string // what clients are asked to request of the authorization server; nil means none
	Replica        string          // begins the ids of sessions, for a proxy to route by; "" for a server on its own

	identifyEvery time.Duration // how often the caller of a standing stream is identified again; 0 means every 4 minutes
}

// Endpoint serves /mcp. It is safe for concurrent use.
type Endpoint struct {
	o         Options
	log       hclog.Logger
	guard     *webguard.Policy
	self      json.RawMessage // who answers: serverInfo
	live      *session.Set
	writer    *session.Writer
	lease     *session.Lease
	moving    session.Locks // of sessions that come from or go to another server
	hub       *hub
	documents *documents
	standing  openStreams
	workers   workers
	changed   atomic.Pointer[time.Time] // when the access of a user last changed; nil for never

	root    context.Context // the parent of every call's context; ends with Close
	stop    context.CancelFunc
	running sync.WaitGroup // what runs until root ends
	closing closing
}

// New returns an Endpoint that serves from its Mount on. It runs goroutines until Close.
func New(o Options) *Endpoint {
	if o.MaxSessions == 0 {
		o.MaxSessions = 100
	}
	if o.SessionTTL == 0 {
		o.SessionTTL = 8 * time.Hour
	}
	if o.MaxBody == 0 {
		o.MaxBody = 4 << 20
	}
	if o.Scopes == nil {
		o.Scopes = func() []string { return nil }
	}
	if o.identifyEvery == 0 {
		o.identifyEvery = identifyInterval
	}
	if o.Streams == nil {
		o.Streams = stream.New(o.Logger)
	}
	e := &Endpoint{o: o, log: o.Logger, guard: policy(o), workers: newWorkers()}
	e.root, e.stop = context.WithCancel(context.Background())
	e.self, _ = json.Marshal(e.implementation()) // strings always marshal
	e.live = session.NewSet(o.MaxSessions, o.MaxPerUser)
	e.writer = session.NewWriter(o.Store, o.SessionTTL, o.Logger)
	e.lease = session.NewLease(e.writer)
	e.hub = newHub(o.Tools)
	e.documents = &documents{access: o.Access}
	e.running.Go(func() { e.writer.Run(e.root, e.live.Records) })
	e.running.Go(e.keepLease)
	return e
}

// policy returns the rules for Host, Origin and proxies of the options.
func policy(o Options) *webguard.Policy {
	return &webguard.Policy{
		Dev: o.Access.Dev(), Hosts: o.AllowedHosts, Origins: o.AllowedOrigins, TrustedProxies: o.TrustedProxies, BaseURL: o.BaseURL,
	}
}

// Mount registers /mcp and the discovery documents. Headers that outer
// middleware set before the handler are sent with every answer, streams included.
func (e *Endpoint) Mount(r fiber.Router) {
	r.All("/mcp", e.serve)
	r.All("/mcp/:workspace", e.serve)
	r.All("/mcp/:workspace/v/:view", e.serve)
	r.Get("/.well-known/oauth-protected-resource", e.protectedResource)
	r.Get("/.well-known/oauth-authorization-server", e.authorizationServer)
	for _, resource := range []string{"/mcp", "/mcp/:workspace", "/mcp/:workspace/v/:view"} {
		r.Get("/.well-known/oauth-protected-resource"+resource, e.protectedResource)
		r.Get("/.well-known/oauth-authorization-server"+resource, e.authorizationServer) // clients of 2025-03-26 ask here
	}
}

// UseStore makes store the session store, from its return on. Every live session
// is written to it first; when that fails the old store stays and the error says why.
func (e *Endpoint) UseStore(ctx context.Context, store sessionstore.Store) error {
	if err := e.writer.Swap(ctx, store, e.live.Records); err != nil {
		return err
	}
	e.renewLease(ctx)
	return nil
}

// Sessions is how many sessions are live in this process.
func (e *Endpoint) Sessions() int { return len(e.live.All()) }

// Close refuses new work at once, lets the calls in flight finish until ctx ends, then ends every
// session and stream. Session records stay in the store: another server, or the next start, takes the
// sessions over, or answers `unavailable` instead of `not_found` where the store does not allow that.
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

// closing ends the tools' side of sessions in the background: apps may take a while to end what they
// kept for a session.
type closing struct {
	mu      sync.Mutex
	waiting bool // wait was called: from now on start does the work itself
	running sync.WaitGroup
}

// start begins to close one.
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

// wait returns when all that were started before are closed.
func (n *closing) wait() {
	n.mu.Lock()
	n.waiting = true
	n.mu.Unlock()
	n.running.Wait()
}

// closeTools closes one now. Apps are notified within gateTimeout, whatever else ends.
func closeTools(s *tools.Session) {
	ctx, cancel := context.WithTimeout(context.Background(), gateTimeout)
	defer cancel()
	s.Close(ctx)
}
