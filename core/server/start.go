package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/ropewalk/ropewalk/core/access"
	"github.com/ropewalk/ropewalk/core/apidocs"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/console"
	"github.com/ropewalk/ropewalk/core/control"
	"github.com/ropewalk/ropewalk/core/event"
	"github.com/ropewalk/ropewalk/core/httpapi"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/mcphttp"
	"github.com/ropewalk/ropewalk/core/metrics"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/core/statekey"
	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/core/stream"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/core/tracing"
	"github.com/ropewalk/ropewalk/core/trust"
)

// The steps of Start, in their order. Each registers its closer as soon as it has something to close.

// openTracing comes first, so that Close exports the spans of everything else last.
func (s *Server) openTracing(ctx context.Context) (err error) {
	s.tracer, err = tracing.New(ctx, tracing.Options{Environment: s.config.Environment, Version: s.version, Logger: s.log.Named("tracing")})
	s.closers.add("tracing", s.tracer.Close)
	return err
}

// openAdapters comes before the state: an adapter that refuses its settings fails the start before anything in
// the home is created or migrated.
func (s *Server) openAdapters(ctx context.Context) (err error) {
	s.host = pluginhost.New(pluginhost.Options{
		Version: s.version,
		Home:    s.config.Home, Builtins: s.o.Builtins, Logger: s.log.Named("plugin"), Env: s.config.Environment,
		PassEnv: s.config.Plugins.PassEnv, Limits: s.config.Plugins.Limits, StartTimeout: s.config.Plugins.StartTimeout, CallTimeout: s.config.Plugins.CallTimeout,
		RequireSignature: s.config.Plugins.RequireSignature, TrustedKeys: s.config.Plugins.TrustedKeys,
		Metrics: s.metrics,
	})
	if s.adapters, err = openAdapters(ctx, s.host, s.config); err != nil {
		return s.allProblems(ctx, s.config, err)
	}
	s.closers.add("adapters", func(ctx context.Context) error { s.adapters.close(ctx); return nil })
	return nil
}

func (s *Server) openState(ctx context.Context) (err error) {
	if err := config.CreateHome(s.config.Home); err != nil { // the first start on a machine
		return err
	}
	keys, err := statekey.Load(ctx, s.config)
	if err != nil {
		return err
	}
	s.store, err = store.Open(ctx, store.Options{
		Path: filepath.Join(s.config.Home, "ropewalk.db"), URL: s.config.Storage.URL, Logger: s.log.Named("store"),
		Observer:  s.metrics,
		Keys:      keys,
		Retention: store.Retention{Usage: s.config.Storage.UsageRetention, Approvals: s.config.Storage.ApprovalRetention},
	})
	if err != nil {
		return err
	}
	s.closers.add("store", func(context.Context) error { return s.store.Close() })
	return nil
}

// listenError says why an address cannot be listened on, and what to do.
func listenError(address string, err error) error {
	cause := err
	if o, ok := errors.AsType[*net.OpError](err); ok {
		cause = o.Err // the rest of it repeats the address
	}
	remedy := "listen on an address of this machine with --host or http.host"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		remedy = "choose another port with --port or http.port; `ropewalk doctor` says whether it is another Ropewalk that has it"
	case errors.Is(err, syscall.EACCES):
		remedy = "choose a port of 1024 or more with --port or http.port, or let the executable use lower ones (setcap cap_net_bind_service=+ep)"
	}
	return fmt.Errorf("cannot listen on %s: %w; %s", address, cause, remedy)
}

// openListener binds the port before any app starts, so that a port in use fails the start early.
func (s *Server) openListener(ctx context.Context) (err error) {
	c := s.config.HTTP
	address := net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
	var l net.ListenConfig
	if s.listener, err = l.Listen(ctx, "tcp", address); err != nil {
		return listenError(address, err)
	}
	s.closers.add("listener", func(context.Context) error { return ignoreClosed(s.listener.Close()) })
	return nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// openServices starts everything that the HTTP endpoints use.
func (s *Server) openServices(ctx context.Context) error {
	c := s.config
	if err := s.openAudit(); err != nil {
		return err
	}
	s.bus = event.New(s.log.Named("event"))
	s.bus.Retain(c.Storage.EventRetention)
	beating, stop := context.WithCancel(context.Background())
	s.closers.add("events", func(context.Context) error { stop(); s.bus.Close(); return nil })
	s.features = newFeatures(c.Features)
	s.access = access.New(access.Options{
		APIKey: c.APIKey, Providers: s.adapters.providers(c), Audiences: audiences(c, s.addr()),
		Users: s.store, Cookies: s.store, Keys: s.store, Enroller: s.store, Logins: s.logins(), Revocations: s.store, Logger: s.log.Named("access"),
		StaleMembership: c.Storage.StaleMembership,
	})
	if err := s.access.EndOldLogins(ctx); err != nil {
		return err
	}
	s.pins = trust.NewPins(trust.PinOptions{Mode: c.Tools.Pin, Records: s.store, Events: s.bus, Logger: s.log.Named("trust")})
	s.approvals = trust.NewApprovals(trust.ApprovalOptions{
		Patterns: c.Tools.Approve, Wait: c.Tools.ApprovalWait, Expiry: c.Tools.ApprovalExpiry, Records: s.store, Events: s.bus,
	})
	s.apps = apps.New(apps.Options{
		Pins: s.pins, Metrics: s.metrics,
		Home: c.Home, Records: s.store, Cluster: s.cluster(), Events: s.bus, Registries: s.adapters.registries(), Configured: c.Apps,
		Logger: s.log.Named("apps"), Version: s.version, HostEnv: c.Environment, MaxSessionInstances: c.MCP.MaxInstances, MaxAnswer: c.Limits.AnswerBytes,
		Sandbox: c.Sandbox, Confinement: s.confinement(ctx), Install: c.Install,
	})
	s.closers.add("apps", s.apps.Close)
	s.joinEvents()
	go s.bus.Run(beating)
	s.tools = tools.New(tools.Options{Apps: s.apps, Events: s.bus, Features: s.features, Logger: s.log.Named("tools"), Audit: s.auditor(), Approvals: s.approvals, Metrics: s.metrics})
	s.tools.Add(
		tools.ListApps(s.apps), tools.ManageApps(s.apps), s.tools.Search(s.adapters), s.tools.Status(s.apps, s.version, s.started),
	)
	if err := s.openChat(); err != nil {
		return err
	}
	s.followCluster()
	return nil
}

// openChat starts the chat engine and adds its tools.
func (s *Server) openChat() error {
	models, err := chat.NewModels(s.config.Models)
	if err != nil {
		return err
	}
	if proxy := s.config.Models.Proxy.Host(); proxy != "" {
		s.log.Info("model requests to https URLs use a proxy", "proxy", proxy)
	}
	s.skills = skill.NewLibrary(s.config.Home, s.config.Skills.Directories, s.log.Named("skill"))
	s.chat = chat.New(chat.Options{
		Store: s.store, Tools: s.tools, Models: models, Logger: s.log.Named("chat"), QuestionTimeout: s.config.Chat.ElicitationTimeout,
		Skills: s.skills, Features: s.features, Events: s.bus, Metrics: s.metrics,
	})
	s.closers.add("chat", s.chat.Close)
	s.tools.Add(
		s.chat.Delegate(), s.chat.ManageSkills(), s.chat.SetModelConfig(),
		tools.ManageUsers(s.store, s.access), tools.ManageWorkspaces(s.store, s.access),
	)
	return nil
}

// openEndpoints creates /mcp and /v1. Connections wait in the listener until openApps serves them.
func (s *Server) openEndpoints(context.Context) error {
	c := s.config
	streams := stream.New(s.log.Named("stream"))
	shares := limits.New(limits.Settings{
		AtATime:        map[limits.Kind]int{limits.Streams: c.Limits.Streams, limits.ChatRuns: c.Limits.ChatRuns, limits.Calls: c.Limits.Calls},
		CallsPerSecond: c.Limits.CallsPerSecond,
	})
	s.endpoint = mcphttp.New(mcphttp.Options{
		Tools: s.tools, Access: s.access, Store: s.adapters.store.Store(), Features: s.features, Logger: s.log.Named("mcp"), Metrics: s.metrics,
		Limits: shares, Streams: streams, MaxSessions: c.MCP.MaxSessions, MaxPerUser: c.Limits.Sessions, MaxBody: c.Limits.MCPBodyBytes, SessionTTL: c.MCP.SessionTTL, TrustedProxies: c.HTTP.TrustedProxies,
		AllowedHosts: c.HTTP.AllowedHosts, AllowedOrigins: c.AllowedOrigins, BaseURL: c.HTTP.BaseURL,
		Version: s.version, Replica: c.MCP.Replica, OwnBodies: true, Scopes: advertisedScopes(c),
	})
	s.closers.add("mcp sessions", s.endpoint.Close)
	s.endRevoked()
	s.closers.add("revocation feeds", s.closeFeeds)
	for _, a := range s.adapters.auth {
		s.follow(a.handle)
	}
	s.metrics.AddSources(metrics.Sources{
		Started: s.started, Plugins: s.host.Status, Apps: s.apps.States, AppCalls: s.apps.InFlight, Sessions: s.endpoint.Sessions,
		Streams: streams.Count, Events: s.bus.Stats, Database: s.store.Stats, Audit: s.audit.Status,
	})
	s.http = httpapi.New(httpapi.Options{
		Access: s.access, Apps: s.apps, Tools: s.tools, Pins: s.pins, Approvals: s.approvals, Events: s.bus, Chat: s.chat, State: s.store, Metrics: s.metrics, Registries: s.adapters, Logger: s.log.Named("http"), Version: s.version, Audit: s.auditor(), AuditTrail: s.audit, Settings: s.settings, Plugins: s.pluginStates,
		Mounts: s.mounts(), Closed: s.endpoint.Closed, Streams: streams,
		AllowedOrigins: c.AllowedOrigins, AllowedHosts: c.HTTP.AllowedHosts, TrustedProxies: c.HTTP.TrustedProxies,
		BaseURL: c.HTTP.BaseURL, RedirectURI: redirectURI(c), Landing: !c.HTTP.Console, Login: len(c.Auth) > 0,
		Checks: s.checks(), ShutdownDelay: c.HTTP.ShutdownDelay, AccessLog: c.Log.Access, Tracer: s.tracer,
		BodyBudget: s.o.BodyBudget, MaxAPIBody: c.Limits.APIBodyBytes, MaxConns: c.Limits.Connections, MaxConnsPerAddress: c.Limits.ConnectionsPerAddress,
		TokensPerDay: int64(c.Limits.TokensPerDay), Limits: shares,
	})
	s.closers.add("http", s.http.Shutdown)
	return nil
}

// mounts are what is served beside /v1.
func (s *Server) mounts() []func(httpapi.Router) {
	c, all := s.config, []func(httpapi.Router){s.endpoint.Mount, apidocs.New(httpapi.OpenAPI()).Mount}
	if c.HTTP.Console {
		all = append(all, console.New(console.Options{
			Dev: c.Dev(), APIKey: c.APIKey != "", Login: len(c.Auth) > 0, BaseURL: c.HTTP.BaseURL, ViewOrigin: c.HTTP.ViewOrigin,
			Version: s.version,
		}).Mount)
	}
	return all
}

// openApps starts the apps and serves requests at the same time.
func (s *Server) openApps(ctx context.Context) error {
	if err := s.apps.Open(ctx); err != nil {
		return err
	}
	go func() {
		if err := s.http.Serve(s.listener); err != nil {
			s.failed <- err
		}
	}()
	return nil
}

func (s *Server) openControl(ctx context.Context) error {
	c, err := control.Listen(ctx, s.config.Home, s)
	if err != nil {
		return err
	}
	s.closers.add("control", c.Close)
	return nil
}

func (s *Server) addr() *net.TCPAddr { return s.listener.Addr().(*net.TCPAddr) }

// redirectURI is where an identity provider redirects browsers to whose section does not say it: below the
// base URL; "" derives it from the request.
func redirectURI(c *config.Config) string {
	if c.HTTP.BaseURL == "" {
		return ""
	}
	return c.HTTP.BaseURL + "/v1/auth/callback"
}
