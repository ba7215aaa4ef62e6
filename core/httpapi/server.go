package httpapi

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/hashicorp/go-hclog"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core/httpapi/accountapi"
	"github.com/ropewalk/ropewalk/core/httpapi/adminapi"
	"github.com/ropewalk/ropewalk/core/httpapi/appapi"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/httpapi/chatapi"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
	"github.com/ropewalk/ropewalk/core/httpapi/intake"
	"github.com/ropewalk/ropewalk/core/httpapi/landing"
	"github.com/ropewalk/ropewalk/core/httpapi/listener"
	"github.com/ropewalk/ropewalk/core/httpapi/login"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/stream"
	"github.com/ropewalk/ropewalk/core/webguard"
)

// Server serves the HTTP API and the endpoints mounted next to it.
type Server struct {
	access  Access
	apps    Apps
	tools   appapi.Tools
	events  Events
	chat    Chat
	log     hclog.Logger
	version string

	options Options
	started time.Time
	guard   *webguard.Policy
	streams *stream.Streams
	bodies  *intake.Reader
	large   *limits.Places // for requests with large responses
	router  *fiber.App
	root    context.Context // the parent of every request's context; cancelled at the end of Shutdown
	stop    context.CancelFunc

	authn         *authn.Authenticator
	login         *login.Handlers
	app           *appapi.Handlers
	conversations *chatapi.Handlers
	admin         *adminapi.Handlers

	account *accountapi.Handlers

	largeBodies map[string]action // POST routes whose bodies have their own limit; none has path parameters

	readiness *readiness
	spans     sync.Map    // tracing.Spans by *fasthttp.RequestHeader, for requests whose credentials are checked before their bodies are read
	refused   sync.Map    // copies of headers by *fasthttp.RequestHeader, for requests whose bodies are not read (headerReceived)
	accessLog atomic.Bool // whether each request is logged at info

	leaving  atomic.Bool // Shutdown has started: the server is not ready, but still accepts requests
	draining atomic.Bool // set under mu
	mu       sync.Mutex
	ln       net.Listener // what Serve listens on
}

// New returns a Server. Serve starts it.
func New(o Options) *Server {
	o.setDefaults()
	s := &Server{
		access: o.Access, apps: o.Apps, tools: o.Tools, events: o.Events, chat: o.Chat, log: o.Logger, version: o.Version,
		bodies:      intake.NewReader(o.Timeouts.Body, maxBody, o.BodyBudget),
		large:       limits.NewPlaces(largeAtATime, largePerUser),
		largeBodies: map[string]action{},
		options:     o, started: time.Now(), streams: o.Streams,
		guard: &webguard.Policy{
			Dev: o.Access.Dev(), Hosts: o.AllowedHosts, Origins: o.AllowedOrigins, TrustedProxies: o.TrustedProxies, BaseURL: o.BaseURL,
			UnknownTLS: true,
		},
	}
	s.accessLog.Store(o.AccessLog)
	s.setHandlers()
	s.readiness = newReadiness(o.Checks, s.logReadiness)
	s.root, s.stop = context.WithCancel(context.Background())
	s.router = fiber.New(fiber.Config{
		AppName:                      "ropewalk",
		DisableStartupMessage:        true,
		CaseSensitive:                true,
		StrictRouting:                true,
		Immutable:                    true, // strings taken from a request may be kept
		DisablePreParseMultipartForm: true, // the upload reads its form as a stream
		StreamRequestBody:            true, // Server.bodies reads them
		ReadBufferSize:               maxHeaders,
		ReadTimeout:                  o.Timeouts.Header,
		WriteTimeout:                 o.Timeouts.Write,
		IdleTimeout:                  o.Timeouts.Idle,
		JSONEncoder:                  func(v any) ([]byte, error) { return rawjson.Encode(v) }, // HTML escaping would write each "<" as six bytes
		ErrorHandler: func(c *fiber.Ctx, err error) error {
			s.fail(c.Context(), err)
			return nil
		},
	})
	s.router.Use(keepRoute)
	s.router.Use("/v1", s.withContext, s.keepOut, s.recordRequest)
	s.router.Use([]string{"/v1", "/mcp", "/.well-known"}, httpio.DecodePath)
	for _, r := range s.routes() {
		handler := s.handler(r)
		s.router.Add(r.method, r.path, handler)
		if r.method == fiber.MethodGet {
			s.router.Add(fiber.MethodHead, r.path, handler)
		}
		if r.action.limit > 0 {
			s.largeBodies[r.path] = r.action
		}
	}
	s.serveLanding()
	s.router.Get("/livez", s.live)
	s.router.Get("/readyz", s.ready)
	for _, mount := range o.Mounts {
		mount(s.router)
	}
	h := s.router.Server()
	h.Handler = s.wrap(s.router.Handler())
	h.ErrorHandler = s.writeUnreadable
	h.HeaderReceived = s.headerReceived
	h.ConnState = func(conn net.Conn, state fasthttp.ConnState) {
		listener.SetIdle(conn, state == fasthttp.StateNew || state == fasthttp.StateIdle)
	}
	h.CloseOnShutdown = true
	h.KeepHijackedConns = true // streams close their own connections
	h.Logger = s.log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug})
	return s
}

// LogRequests replaces Options.AccessLog.
func (s *Server) LogRequests(on bool) { s.accessLog.Store(on) }

func (s *Server) setHandlers() {
	o := &s.options
	s.authn = &authn.Authenticator{Access: o.Access, Guard: s.guard, Recheck: o.Timeouts.Recheck}
	s.login = &login.Handlers{Access: o.Access, Guard: s.guard, Log: o.Logger, RedirectURI: o.RedirectURI}
	s.app = &appapi.Handlers{
		Apps: o.Apps, Tools: o.Tools, Models: o.Chat, Pins: o.Pins, Approvals: o.Approvals, Streams: o.Streams, Limits: o.Limits, Guard: s.guard, Authn: s.authn, Log: o.Logger, Quiet: o.Timeouts.Quiet,
	}
	s.conversations = &chatapi.Handlers{
		Chat: o.Chat, Streams: o.Streams, Limits: o.Limits, Authn: s.authn, Log: o.Logger, Quiet: o.Timeouts.Quiet,
	}
	s.account = &accountapi.Handlers{
		Accounts: o.Accounts, Access: o.Access, Authn: s.authn, Guard: s.guard, Login: o.Login, BaseURL: o.BaseURL, Log: o.Logger,
	}
	s.admin = &adminapi.Handlers{People: o.People, Views: o.Views, Models: o.Chat, Registries: o.Registries, Audit: o.AuditTrail, AuditReads: adminapi.NewAuditReads(), Settings: o.Settings, Plugins: o.Plugins}
}

// serveLanding serves the landing page if Options.Landing is set.
func (s *Server) serveLanding() {
	if !s.options.Landing {
		return
	}
	page, err := landing.New(landing.Page{Access: s.access, Authn: s.authn, Guard: s.guard, Login: s.options.Login, Version: s.version})
	if err != nil { // cannot happen: the template is part of the executable
		s.log.Error("the landing page cannot be served", "error", err)
		return
	}
	s.router.Get("/", s.withContext, s.keepOut, page.Get)
	s.router.Head("/", s.withContext, s.keepOut, page.Get)
}

// withContext gives the handlers a context that does not refer to the request. Unlike fasthttp's context, which is
// reused, it may be kept.
func (s *Server) withContext(c *fiber.Ctx) error {
	ctx, cancel := context.WithCancel(webguard.RequestOf(c.Context()).In(s.root))
	defer cancel()
	c.SetUserContext(ctx)
	err := c.Next()
	noteRoute(c)
	return err
}

// Serve serves the connections of ln until Shutdown and then returns nil. It closes ln.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	if s.draining.Load() {
		s.mu.Unlock()
		return ln.Close()
	}
	s.ln = ln
	s.mu.Unlock()
	err := s.router.Listener(listener.New(ln, listener.Options{
		MaxConns: s.options.MaxConns, MaxPerPeer: s.options.MaxConnsPerAddress, TrustedPeer: s.guard.Trusted, TLS: s.options.TLS, Logger: s.log,
	}))
	if s.draining.Load() {
		return nil
	}
	return err
}

// Shutdown closes the listener and the long-lived event streams, refuses new requests with 503, and lets in-flight
// requests finish. If ctx ends first, it cancels the contexts of the remaining requests and returns ctx's error.
//
// Before that, /readyz reports failure for Options.ShutdownDelay, so that load balancers stop sending requests.
func (s *Server) Shutdown(ctx context.Context) error {
	if !s.leaving.Swap(true) && s.options.ShutdownDelay > 0 {
		select {
		case <-time.After(s.options.ShutdownDelay):
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	s.draining.Store(true)
	ln := s.ln
	s.mu.Unlock()
	defer s.stop()
	// The listener is closed first, so that clients that reconnect because their stream ended are refused and try
	// another server.
	if ln != nil {
		_ = ln.Close() // Serve may not have started to accept
	}
	s.streams.Drain()
	if err := s.router.ShutdownWithContext(ctx); err != nil && ctx.Err() == nil {
		s.log.Debug("could not close the listener", "error", err) // expected: it was closed above
	}
	if ctx.Err() != nil {
		s.stop()
	}
	return errors.Join(ctx.Err(), s.streams.Shutdown(ctx))
}
