package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/access"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
	"github.com/ropewalk/ropewalk/core/event"
	"github.com/ropewalk/ropewalk/core/httpapi"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/mcphttp"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/core/stream"
	"github.com/ropewalk/ropewalk/core/tools"
)

// Options is what a server is started from.
type Options struct {
	Config   *config.Config
	Load     func() (*config.Config, error) // reads the configuration anew, for Reload
	Builtins pluginhost.Builtins
	Version  string
	Logger   hclog.Logger
}

// Server is the whole service, running.
type Server struct {
	o       Options
	log     hclog.Logger
	version string
	started time.Time
	addr    *net.TCPAddr

	store    *store.Store
	host     *pluginhost.Host
	adapters *adapters
	features *features
	access   *access.Access
	yard     *apps.Yard
	endpoint *mcphttp.Endpoint
	failed   chan error // the listener broke

	reloading sync.Mutex
	config    *config.Config // what is in force
	closers   closers
}

// Start starts every room in order. It is all or nothing: after an error nothing is left running.
// Apps come up behind its back, so that a slow one delays nobody.
func Start(ctx context.Context, o Options) (_ *Server, err error) {
	s := &Server{o: o, log: o.Logger, version: o.Version, started: time.Now(), config: o.Config, failed: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close(context.WithoutCancel(ctx)))
		}
	}()
	for _, warning := range o.Config.Warnings {
		s.log.Warn(warning)
	}
	for _, step := range []func(context.Context) error{s.openState, s.openAdapters, s.openRooms, s.openControl} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Server) openState(ctx context.Context) (err error) {
	if err := os.MkdirAll(s.config.Home, 0o700); err != nil { // the first start on a machine
		return fmt.Errorf("the home (--home, ROPEWALK_HOME) cannot be made: %w", err)
	}
	s.store, err = store.Open(ctx, store.Options{Path: filepath.Join(s.config.Home, "ropewalk.db"), Logger: s.log.Named("store")})
	if err != nil {
		return err
	}
	s.closers.add("store", func(context.Context) error { return s.store.Close() })
	return nil
}

func (s *Server) openAdapters(ctx context.Context) (err error) {
	s.host = pluginhost.New(pluginhost.Options{
		Home: s.config.Home, Builtins: s.o.Builtins, Logger: s.log.Named("plugin"), Env: s.config.Environment,
		PassEnv: s.config.Plugins.PassEnv, StartTimeout: s.config.Plugins.StartTimeout, CallTimeout: s.config.Plugins.CallTimeout,
	})
	if s.adapters, err = openAdapters(ctx, s.host, s.config); err != nil {
		return err
	}
	s.closers.add("adapters", func(ctx context.Context) error { s.adapters.close(ctx); return nil })
	return nil
}

// openRooms opens everything from the listener to the apps behind it.
func (s *Server) openRooms(ctx context.Context) error {
	c := s.config
	listener, err := listen(ctx, c.HTTP)
	if err != nil {
		return err
	}
	s.addr = listener.Addr().(*net.TCPAddr)
	s.closers.add("listener", func(context.Context) error { return ignoreClosed(listener.Close()) })

	bus := event.New(s.log.Named("event"))
	beat, stopBeat := context.WithCancel(context.Background())
	s.closers.add("heartbeat", func(context.Context) error { stopBeat(); return nil })
	go bus.Run(beat)

	s.features = newFeatures(c.Features)
	s.access = access.New(access.Options{
		APIKey: c.APIKey, Adapter: s.adapters.authAdapter(), Audiences: audiences(c, s.addr), AnyAudience: c.Auth.AnyAudience,
		Users: s.store, Cookies: s.store, Logger: s.log.Named("access"),
	})
	s.yard = apps.New(apps.Options{
		Home: c.Home, Records: s.store, Events: bus, Registries: s.adapters.registries(), Configured: c.Apps,
		Logger: s.log.Named("apps"), HostEnv: c.Environment, Remote: link.RemoteOptions{},
	})
	s.closers.add("apps", s.yard.Close)

	namespace := tools.New(tools.Options{Apps: s.yard, Events: bus, Features: s.features, Logger: s.log.Named("tools")})
	namespace.Add(
		tools.ListApps(s.yard), tools.ManageApps(s.yard), namespace.Search(s.adapters),
		namespace.Status(s.yard, s.version, s.started),
	)
	streams := stream.New(s.log.Named("stream"))
	s.endpoint = mcphttp.New(mcphttp.Options{
		Tools: namespace, Access: s.access, Store: s.adapters.sessions(), Features: s.features, Logger: s.log.Named("mcp"),
		MaxSessions: c.MCP.MaxSessions, SessionTTL: c.MCP.SessionTTL, TrustedProxies: c.HTTP.TrustedProxies,
		AllowedHosts: c.HTTP.AllowedHosts, AllowedOrigins: c.AllowedOrigins, BaseURL: func() string { return c.HTTP.BaseURL },
		Version: s.version,
	})
	s.closers.add("mcp sessions", s.endpoint.Close)
	http := httpapi.New(httpapi.Options{
		Access: s.access, Apps: s.yard, Tools: namespace, Events: bus, Logger: s.log.Named("http"), Version: s.version,
		Mounts: []func(httpapi.Router){s.endpoint.Mount}, Streams: streams,
		AllowedOrigins: c.AllowedOrigins, AllowedHosts: c.HTTP.AllowedHosts, TrustedProxies: c.HTTP.TrustedProxies,
		RedirectURI: c.Auth.RedirectURI,
	})
	s.closers.add("http", http.Shutdown)
	if err := s.yard.Open(ctx); err != nil {
		return err
	}
	go func() {
		if err := http.Serve(listener); err != nil {
			s.failed <- err
		}
	}()
	return nil
}

func (s *Server) openControl(context.Context) error {
	c, err := control.Listen(s.config.Home, s)
	if err != nil {
		return err
	}
	s.closers.add("control", c.Close)
	return nil
}

func listen(ctx context.Context, c config.HTTP) (net.Listener, error) {
	address := net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
	var l net.ListenConfig
	ln, err := l.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another port with --port or http.port", address, err)
	}
	return ln, nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// URL is where the server answers on this machine.
func (s *Server) URL() string { return "http://" + s.addr.String() }

// WorkspaceID is the workspace that a caller who names none is in.
func (s *Server) WorkspaceID() string { return core.DefaultWorkspaceID }

// Failed gives the error of a listener that broke.
func (s *Server) Failed() <-chan error { return s.failed }

// Close refuses new work, lets what is in flight finish until ctx ends, and ends everything in the
// reverse order of its start. It may be called again.
func (s *Server) Close(ctx context.Context) error { return s.closers.close(ctx) }
