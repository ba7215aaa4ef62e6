package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/access"
	"github.com/ropewalk/ropewalk/core/accounts"
	"github.com/ropewalk/ropewalk/core/apidocs"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/console"
	"github.com/ropewalk/ropewalk/core/control"
	"github.com/ropewalk/ropewalk/core/event"
	"github.com/ropewalk/ropewalk/core/httpapi"
	"github.com/ropewalk/ropewalk/core/httpapi/listener"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/mcphttp"
	"github.com/ropewalk/ropewalk/core/metrics"
	"github.com/ropewalk/ropewalk/core/people"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/core/process/cgroup"
	"github.com/ropewalk/ropewalk/core/statekey"
	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/core/stream"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/core/tools/view"
	"github.com/ropewalk/ropewalk/core/tracing"
	"github.com/ropewalk/ropewalk/core/trust"
)

// This file contains the steps of Start, in order. Each step registers its closer as soon as it has something to close.

// openTracing comes first, so that Close exports the spans of everything else last.
func (s *Server) openTracing(ctx context.Context) (err error) {
	s.tracer, err = tracing.New(ctx, tracing.Options{Environment: s.config().Environment, Version: s.version, Logger: s.log.Named("tracing")})
	s.closers.add("tracing", s.tracer.Close)
	return err
}

// openAdapters comes before the state, so that an adapter that rejects its settings fails the start before anything in
// the home is created or migrated.
func (s *Server) openAdapters(ctx context.Context) (err error) {
	c := s.config()
	o := hostOptions(c, s.o.Builtins, s.log.Named("plugin"))
	o.Version, o.Metrics = s.version, s.metrics
	s.host = pluginhost.New(o)
	s.adapters = newAdapters(s.host)
	x, err := s.adapters.prepare(ctx, c)
	if err != nil {
		return s.allProblems(ctx, c, err)
	}
	x.apply()
	s.closers.add("adapters", func(ctx context.Context) error { s.adapters.close(ctx); return nil })
	return nil
}

func (s *Server) openState(ctx context.Context) (err error) {
	if err := config.CreateHome(s.config().Home); err != nil { // this may be the first start on a machine
		return err
	}
	keys, err := statekey.Load(ctx, s.config())
	if err != nil {
		return err
	}
	s.store, err = store.Open(ctx, store.Options{
		Path: filepath.Join(s.config().Home, "ropewalk.db"), URL: s.config().Storage.URL, Logger: s.log.Named("store"),
		Observer:  s.metrics,
		Keys:      keys,
		Retention: store.Retention{Usage: s.config().Storage.UsageRetention, Approvals: s.config().Storage.ApprovalRetention},
		Quota: store.Quota{
			APIKeys: s.config().Limits.APIKeys, PersonalApps: s.config().Limits.PersonalApps, Conversations: s.config().Limits.Conversations, Bytes: int64(s.config().Limits.StoredMiB) << 20,
		},
	})
	if err != nil {
		return err
	}
	if err := s.store.EndUnfinished(ctx); err != nil {
		s.log.Warn("answers that a killed server left unfinished stay that way until their conversations continue", "error", err)
	}
	s.closers.add("store", func(context.Context) error { return s.store.Close() })
	return nil
}

// listenError returns an error that explains why the server cannot listen on an address, and what to do.
func listenError(address string, err error) error {
	cause := err
	if o, ok := errors.AsType[*net.OpError](err); ok {
		cause = o.Err // the rest of it repeats the address
	}
	remedy := "set --host or http.host to one of this machine's addresses"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		remedy = "choose another port with --port or http.port; `ropewalk doctor` reports whether another Ropewalk is using it"
	case errors.Is(err, syscall.EACCES):
		remedy = "choose a port of 1024 or more with --port or http.port, or let the executable use lower ones (setcap cap_net_bind_service=+ep)"
	}
	return fmt.Errorf("cannot listen on %s: %w; %s", address, cause, remedy)
}

// openListener binds the port before any app starts, so that a port in use fails the start early.
func (s *Server) openListener(ctx context.Context) (err error) {
	c := s.config().HTTP
	address := net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
	var l net.ListenConfig
	if s.listener, err = l.Listen(ctx, "tcp", address); err != nil {
		return listenError(address, err)
	}
	s.closers.add("listener", func(context.Context) error { return ignoreClosed(s.listener.Close()) })
	if c.TLS.CertFile == "" {
		return nil
	}
	if s.certificate, err = listener.LoadCertificate(c.TLS.CertFile, c.TLS.KeyFile, s.log.Named("http")); err != nil {
		return fmt.Errorf("http.tls: %w", err)
	}
	return nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// shows calls tools.Namespace.ShowsTool, for parts of the server that are created before the namespace.
func (s *Server) shows(c core.Caller, server string, names ...string) bool {
	return s.tools.ShowsTool(c, server, names...)
}

// openServices starts everything that the HTTP endpoints use.
func (s *Server) openServices(ctx context.Context) error {
	c := s.config()
	err := s.openAudit()
	if err != nil {
		return err
	}
	s.bus = event.New(s.log.Named("event"))
	s.bus.Retain(c.Storage.EventRetention)
	beating, stop := context.WithCancel(context.Background())
	s.closers.add("events", func(context.Context) error { stop(); s.bus.Close(); return nil })
	s.access = access.New(access.Options{
		APIKey: c.APIKey, Providers: providersOf(c, s.adapters.auth.Members()), Audiences: audiences(c, s.addr()),
		Users: s.store, Cookies: s.store, Keys: s.store, Enroller: s.store, Logins: s.logins(), Revocations: s.store, Logger: s.log.Named("access"),
		StaleMembership: c.Storage.StaleMembership,
	})
	s.people = people.New(s.store, s.access, s.log.Named("people"))
	if err := s.access.EndOldLogins(ctx); err != nil {
		return err
	}
	if err := s.access.RetainAdmins(ctx); err != nil {
		return err
	}
	s.pins = trust.NewPins(trust.PinOptions{Mode: c.Tools.Pin, Records: s.store, Events: s.bus, Logger: s.log.Named("trust"), Shows: s.shows})
	s.approvals = trust.NewApprovals(trust.ApprovalOptions{
		Patterns: c.Tools.Approve, Wait: c.Tools.ApprovalWait, Expiry: c.Tools.ApprovalExpiry, Records: s.store, Events: s.bus, Logger: s.log.Named("trust"),
		Shows: s.shows,
	})
	s.untilClosed("approvals", s.approvals.Run) // expires approvals
	var makeKey func() error
	if !s.store.Shared() { // servers of a cluster need the same key
		makeKey = s.makeKey
	}
	s.accounts = accounts.New(accounts.Options{
		MakeKey: makeKey,
		Store:   s.store, Events: s.bus, Logger: s.log.Named("accounts"), Dev: s.access.Dev(), BaseURL: c.HTTP.BaseURL, URL: s.localURL,
	})
	s.apps = apps.New(apps.Options{
		Accounts: s.accounts,
		Pins:     s.pins, Metrics: s.metrics,
		Home: c.Home, Records: s.store, Cluster: s.cluster(), Events: s.bus, Registries: s.adapters.named(), Configured: c.Apps,
		Logger: s.log.Named("apps"), Version: s.version, HostEnv: c.Environment, MaxSessionInstances: c.MCP.MaxInstances, MaxAnswer: c.Limits.AnswerBytes, CallTimeout: c.Tools.CallTimeout,
		Idle: c.Idle, MaxAwake: c.MaxAwake, MemoryIsShort: cgroup.MemoryIsShort, Sandbox: c.Sandbox, Confinement: s.confinement(ctx), Protected: s.ungrantablePaths(), Install: c.Install,
	})
	s.closers.add("apps", s.apps.Close)
	s.openAccounts()
	s.joinEvents()
	go s.bus.Run(beating)
	s.providers = &providerWatch{access: s.access, log: s.log.Named("access"), again: make(chan struct{}, 1)}
	go s.providers.run(beating)
	if s.views, err = view.NewRegistry(ctx, s.store, declaredViews(c), s.log.Named("views")); err != nil {
		return err
	}
	s.skills = skill.NewLibrary(c.Home, c.Skills.Directories, s.log.Named("skill"))
	s.tools = tools.New(tools.Options{Access: s.access, Views: s.views, Apps: s.apps, Events: s.bus, Features: s.features, Logger: s.log.Named("tools"), Audit: s.auditor(), Approvals: s.approvals, Accounts: s.accounts, Metrics: s.metrics, Surface: c.Tools.Surface, Surfaces: c.Tools.Surfaces, Budget: c.Tools.Budget, Favourites: c.Tools.Favourites, Results: s.store, Skills: s.skills, Tasks: s.store, ResultBudget: c.Tools.ResultBudget})
	s.closers.add("tasks", s.tools.Close)
	s.tools.Add(
		tools.ListApps(s.apps), tools.ManageApps(s.apps), s.tools.Search(s.adapters), s.tools.Status(s.apps, s.version, s.started), s.tools.SearchTools(), s.tools.CallTool(), s.tools.ReadResult(),
	)
	if err := s.openChat(); err != nil {
		return err
	}
	s.followCluster()
	return nil
}

// untilClosed runs do in the background. When the server closes, ctx ends, and the server waits until do returns.
func (s *Server) untilClosed(name string, do func(ctx context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { do(ctx) })
	s.closers.add(name, func(context.Context) error {
		stop()
		running.Wait()
		return nil
	})
}

// declaredViews returns the views of a configuration. They were checked when it was loaded.
func declaredViews(c *config.Config) (all []view.Declared) {
	for _, d := range c.Views {
		if v, err := view.New(d.View); err == nil {
			all = append(all, view.Declared{View: v, Workspaces: d.Workspaces})
		}
	}
	return all
}

// makeKey creates the key that encrypts the state, for the first linked account of a server without a key.
func (s *Server) makeKey() error {
	keys, path, err := statekey.Create(s.config().Home)
	if err != nil {
		return core.Wrap(core.CodeNotConfigured, err, "account tokens are stored only if they can be encrypted, and this server has no key: "+err.Error())
	}
	s.store.UseKeys(keys)
	s.log.Warn("created a key that encrypts tokens and, from the next start, all app secrets; keep a copy of it, separate from the backups", "file", path)
	return nil
}

// openAccounts connects the linked accounts with the apps, and starts to revoke tokens in the background.
func (s *Server) openAccounts() {
	s.accounts.SetApps(s.apps)
	s.store.WatchMembers(s.accounts.MembersChanged)
	s.untilClosed("accounts", s.accounts.Run)
}

// openChat starts the chat engine and adds its tools.
func (s *Server) openChat() error {
	models, err := chat.NewModels(s.config().Models)
	if err != nil {
		return err
	}
	if proxy := s.config().Models.Proxy.Host(); proxy != "" {
		s.log.Info("model requests to https URLs use a proxy", "proxy", proxy)
	}
	c := s.config().Limits
	s.shares = limits.New(limits.Settings{
		AtATime:        map[limits.Kind]int{limits.Streams: c.Streams, limits.ChatRuns: c.ChatRuns, limits.Calls: c.Calls},
		CallsPerSecond: c.CallsPerSecond, UnreadBytes: unreadPerBody * int(s.o.BodyBudget),
	})
	s.chat = chat.New(chat.Options{
		Store: s.store, Tools: s.tools, Models: models, Logger: s.log.Named("chat"), QuestionTimeout: s.config().Chat.ElicitationTimeout, ToolBudget: s.config().Tools.Budget,
		Access: s.access, Skills: s.skills, Features: s.features, Events: s.bus, Metrics: s.metrics, Limits: s.shares, TokensPerDay: int64(c.TokensPerDay),
	})
	s.closers.add("chat", s.chat.Close)
	s.tools.Add(
		s.chat.Delegate(), s.chat.ManageSkills(), s.chat.SetModelConfig(),
		tools.ManageUsers(s.people), tools.ManageWorkspaces(s.people), tools.ManageAccounts(s.accounts, s.apps),
	)
	return nil
}

// unreadPerBody is the limit on the bytes of unread responses, as a multiple of the limit on request bodies in flight.
// It is more than 1, because a response takes up only its own size in memory, and a body several times its size.
const unreadPerBody = 2

// openEndpoints creates /mcp and /v1. Connections wait in the listener until openApps serves them.
func (s *Server) openEndpoints(context.Context) error {
	c := s.config()
	streams := stream.New(s.log.Named("stream"))
	s.endpoint = mcphttp.New(mcphttp.Options{
		Tools: s.tools, Views: s.views, Access: s.access, Store: s.adapters.store.Members()[0].Handle.Store(), Features: s.features, Logger: s.log.Named("mcp"), Metrics: s.metrics,
		Limits: s.shares, Streams: streams, MaxSessions: c.MCP.MaxSessions, MaxPerUser: c.Limits.Sessions, MaxBody: c.Limits.MCPBodyBytes, SessionTTL: c.MCP.SessionTTL, TrustedProxies: c.HTTP.TrustedProxies,
		AllowedHosts: c.HTTP.AllowedHosts, AllowedOrigins: c.AllowedOrigins, BaseURL: c.HTTP.BaseURL,
		Version: s.version, Replica: c.MCP.Replica, OwnBodies: true, Scopes: func() []string { return advertisedScopes(s.config()) },
	})
	s.closers.add("mcp sessions", s.endpoint.Close)
	s.endRevoked()
	s.closers.add("revocation feeds", s.closeFeeds)
	for _, m := range s.adapters.auth.Members() {
		s.follow(m.Handle)
	}
	s.metrics.AddSources(metrics.Sources{
		Started: s.started, Plugins: s.host.Status, Apps: s.apps.States, Asleep: s.apps.Asleep, AppCalls: s.apps.InFlight, Sessions: s.endpoint.Sessions,
		Streams: streams.Count, Events: s.bus.Stats, Database: s.store.Stats, Audit: s.audit.log.Status, Providers: s.providers.up,
	})
	s.http = httpapi.New(httpapi.Options{
		Access: s.access, Apps: s.apps, Tools: s.tools, Views: s.views, Accounts: s.accounts, People: s.people, Features: s.features, Pins: s.pins, Approvals: s.approvals, Events: s.bus, Chat: s.chat, State: s.store, Metrics: s.metrics, Registries: s.adapters, Logger: s.log.Named("http"), Version: s.version, Audit: s.auditor(), AuditTrail: s.audit.log, Settings: func() []config.Value { return s.config().Effective() }, Plugins: s.pluginStates,
		Mounts: s.mounts(), RespondIfDisabled: s.endpoint.RespondIfDisabled, Streams: streams,
		AllowedOrigins: c.AllowedOrigins, AllowedHosts: c.HTTP.AllowedHosts, TrustedProxies: c.HTTP.TrustedProxies,
		BaseURL: c.HTTP.BaseURL, RedirectURI: redirectURI(c), Landing: !c.HTTP.Console, Login: s.hasProviders,
		Checks: s.checks(), ShutdownDelay: c.HTTP.ShutdownDelay, AccessLog: c.Log.Access, Tracer: s.tracer,
		BodyBudget: s.o.BodyBudget, MaxAPIBody: c.Limits.APIBodyBytes, MaxConns: c.Limits.Connections, MaxConnsPerAddress: c.Limits.ConnectionsPerAddress,
		Limits: s.shares, TLS: s.certificate.Config(),
	})
	s.closers.add("http", s.http.Shutdown)
	return nil
}

// mounts returns the routes that are served in addition to /v1.
func (s *Server) mounts() []func(httpapi.Router) {
	c, all := s.config(), []func(httpapi.Router){s.endpoint.Mount, apidocs.New(httpapi.OpenAPI()).Mount}
	if c.HTTP.Console {
		all = append(all, console.New(console.Options{
			Dev: c.Dev(), APIKey: c.APIKey != "", Login: s.hasProviders, BrowserLogin: s.access.OffersBrowserLogin,
			BaseURL: c.HTTP.BaseURL, ViewOrigin: c.HTTP.ViewOrigin, Version: s.version,
		}).Mount)
	}
	return all
}

// openMetrics serves the metrics on their own address, if http.metrics is set.
func (s *Server) openMetrics(ctx context.Context) error {
	address := s.config().HTTP.Metrics
	if address == "" {
		return nil
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen on %s for the metrics: %w; choose another address with http.metrics", address, err)
	}
	log := s.log.Named("metrics")
	serving := s.metrics.Listen(listener.New(l, listener.Options{Logger: log}), log)
	s.closers.add("metrics", serving.Close)
	s.log.Info("metrics served", "url", "http://"+serving.Addr().String()+"/metrics")
	return nil
}

// openApps starts the apps and, at the same time, starts to serve requests.
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
	c, err := control.Listen(ctx, s.config().Home, s)
	if err != nil {
		return err
	}
	s.closers.add("control", c.Close)
	return nil
}

// hasProviders reports whether identity providers are configured.
func (s *Server) hasProviders() bool { return len(s.config().Auth) > 0 }

func (s *Server) addr() *net.TCPAddr { return s.listener.Addr().(*net.TCPAddr) }
