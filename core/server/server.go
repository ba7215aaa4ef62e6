package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/access"
	"github.com/ropewalk/ropewalk/core/accounts"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
	"github.com/ropewalk/ropewalk/core/event"
	"github.com/ropewalk/ropewalk/core/httpapi"
	"github.com/ropewalk/ropewalk/core/httpapi/listener"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/logging"
	"github.com/ropewalk/ropewalk/core/mcphttp"
	"github.com/ropewalk/ropewalk/core/metrics"
	"github.com/ropewalk/ropewalk/core/people"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/core/tools/view"
	"github.com/ropewalk/ropewalk/core/tracing"
	"github.com/ropewalk/ropewalk/core/trust"
)

// Options configure a Server.
type Options struct {
	Config   *config.Config
	Load     func() (*config.Config, error) // reads the configuration again, for Reload
	Builtins pluginhost.Builtins
	Version  string
	Commit   string // the commit that the server was built from; "" if unknown
	Logger   hclog.Logger

	LogLevels  *logging.Levels // the levels of Logger; nil if they cannot be changed
	BodyBudget int64           // bytes that large request bodies in flight may use; 0 means no limit
}

// Server is a running server.
type Server struct {
	o       Options
	log     hclog.Logger
	version string
	started time.Time

	metrics     *metrics.Metrics
	store       *store.Store
	providers   *providerWatch
	host        *pluginhost.Host
	adapters    *adapters
	certificate *listener.Certificate // nil if TLS is not used
	listener    net.Listener
	bus         *event.Bus
	features    features
	access      *access.Access
	people      *people.Directory
	accounts    *accounts.Manager
	apps        *apps.Manager
	shares      *limits.Limits
	chat        *chat.Engine
	skills      *skill.Library
	pins        *trust.Pins
	approvals   *trust.Approvals
	views       *view.Registry
	tools       *tools.Namespace
	audit       auditing
	feeds       feeds
	tracer      *tracing.Tracer // nil if tracing is off
	endpoint    *mcphttp.Endpoint
	http        *httpapi.Server
	failed      chan error // receives the error if the listener fails

	reloading sync.Mutex
	current   atomic.Pointer[config.Config] // the configuration in effect
	sandbox   control.Sandbox
	closers   closers
}

// Start starts everything in order. After an error, nothing is left running. Apps start in the
// background, so that a slow app does not delay the rest.
func Start(ctx context.Context, o Options) (_ *Server, err error) {
	s := &Server{o: o, log: o.Logger, version: o.Version, started: time.Now(), failed: make(chan error, 1)}
	s.current.Store(o.Config)
	s.features = s.config
	s.metrics = metrics.New(metrics.Build{Version: o.Version, Commit: o.Commit})
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close(context.WithoutCancel(ctx)))
		}
	}()
	for _, warning := range o.Config.Warnings {
		s.log.Warn(warning)
	}
	steps := []func(context.Context) error{s.openTracing, s.openAdapters, s.openState, s.openListener, s.openServices, s.openEndpoints, s.openMetrics, s.openApps, s.openControl}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// config returns the configuration in effect. A reload replaces it.
func (s *Server) config() *config.Config { return s.current.Load() }

// features looks up the feature flags of the configuration in effect.
type features func() *config.Config

// Enabled reports whether a flag is on.
func (f features) Enabled(flag string) bool { return f().Features.Enabled(flag) }

// URL returns the URL of the address that the server listens on.
func (s *Server) URL() string { return s.scheme() + s.listener.Addr().String() }

func (s *Server) scheme() string {
	if s.certificate != nil {
		return "https://"
	}
	return "http://"
}

// WorkspaceID returns the id of the workspace for callers who do not choose one.
func (s *Server) WorkspaceID() string { return core.DefaultWorkspaceID }

// Failed returns a channel that receives the error if the listener fails.
func (s *Server) Failed() <-chan error { return s.failed }

// Close refuses new requests, lets those in flight finish until ctx ends, and stops everything in the
// reverse order of its start. It may be called again.
func (s *Server) Close(ctx context.Context) error { return s.closers.close(ctx) }

// closers closes everything that was started, in reverse order.
type closers struct {
	mu   sync.Mutex
	list []closer
}

type closer struct {
	name  string
	close func(context.Context) error
}

func (c *closers) add(name string, close func(context.Context) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, closer{name, close})
}

// close closes everything that was added, even after an error, and clears the list.
func (c *closers) close(ctx context.Context) error {
	c.mu.Lock()
	list := c.list
	c.list = nil
	c.mu.Unlock()
	var errs []error
	for _, one := range slices.Backward(list) {
		if err := one.close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", one.name, err))
		}
	}
	return errors.Join(errs...)
}
