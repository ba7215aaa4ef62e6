package server

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/access"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/event"
	"github.com/ropewalk/ropewalk/core/httpapi"
	"github.com/ropewalk/ropewalk/core/mcphttp"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/core/store"
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

	store    *store.Store
	host     *pluginhost.Host
	adapters *adapters
	listener net.Listener
	bus      *event.Bus
	features *features
	access   *access.Access
	yard     *apps.Manager
	chat     *chat.Engine
	skills   *skill.Library
	tools    *tools.Namespace
	endpoint *mcphttp.Endpoint
	http     *httpapi.Server
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
	steps := []func(context.Context) error{s.openAdapters, s.openState, s.openListener, s.openHall, s.openDoors, s.openApps, s.openControl}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// URL is where the server answers on this machine.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// WorkspaceID is the workspace that a caller who names none is in.
func (s *Server) WorkspaceID() string { return core.DefaultWorkspaceID }

// Failed gives the error of a listener that broke.
func (s *Server) Failed() <-chan error { return s.failed }

// Close refuses new work, lets what is in flight finish until ctx ends, and ends everything in the
// reverse order of its start. It may be called again.
func (s *Server) Close(ctx context.Context) error { return s.closers.close(ctx) }
