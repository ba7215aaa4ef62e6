package server

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/control"
	"github.com/ropewalk/ropewalk/core/httpapi/adminapi"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
)

// This file serves the operator's commands (package control), and the queries of admins about the server.

// Status describes the server for the operator's commands.
func (s *Server) Status() control.Status {
	c := s.config()
	return control.Status{
		URL: s.localURL(), BaseURL: c.HTTP.BaseURL, Certificate: s.leaf(), Workspace: s.WorkspaceID(), Version: s.version, PID: os.Getpid(), Dev: c.Dev(),
		SearchPath: c.Environment["PATH"], Config: configFile(c.File), Encrypts: s.store.Encrypts(), Sandbox: s.sandbox,
	}
}

// OwnerToken returns a token for the owner's commands on this machine.
func (s *Server) OwnerToken() core.Secret { return s.access.OwnerToken() }

// configFile returns the absolute path of the configuration file, for commands that run in another directory, or "" if there is
// none.
func configFile(file string) string {
	if path, err := filepath.Abs(file); err == nil && file != "" {
		return path
	}
	return file
}

// localURL returns an address of the server that works on this machine. It replaces an unspecified address, such as
// 0.0.0.0, with a loopback address.
func (s *Server) localURL() string {
	a := s.addr()
	ip := a.IP
	switch {
	case !ip.IsUnspecified():
	case ip.To4() != nil:
		ip = net.IPv4(127, 0, 0, 1)
	default:
		ip = net.IPv6loopback
	}
	return s.scheme() + net.JoinHostPort(ip.String(), strconv.Itoa(a.Port))
}

// leaf returns the certificate that the server presents, in DER, or nil if it does not use TLS.
func (s *Server) leaf() []byte {
	if s.certificate == nil {
		return nil
	}
	return s.certificate.Current().Certificate[0]
}

// LogLevels changes the log levels of components until the next start, and returns the levels in effect.
func (s *Server) LogLevels(change map[string]string) (map[string]string, error) {
	if s.o.LogLevels == nil {
		return nil, errors.New("this server's log levels cannot be changed")
	}
	if err := s.o.LogLevels.Change(change); err != nil {
		return nil, err
	}
	if len(change) > 0 {
		s.log.Info("log levels changed", "levels", s.o.LogLevels.All())
	}
	return s.o.LogLevels.All(), nil
}

// Readiness returns the outcome of each check of /readyz, with the reasons.
func (s *Server) Readiness() []control.Check {
	all := []control.Check{}
	for _, c := range s.http.Readiness() {
		one := control.Check{Name: c.Name, Advisory: c.Advisory}
		if c.Err != nil {
			one.Err = c.Err.Error()
		}
		all = append(all, one)
	}
	return all
}

// Plugins returns the state of the plugins.
func (s *Server) Plugins() []pluginhost.Status { return s.host.Status() }

// Attach directs the calls to a plugin to a process that somebody else started.
func (s *Server) Attach(ctx context.Context, a control.Attach, attached func(control.Attached)) error {
	return s.host.Attach(ctx, plugins.Kind(a.Kind), a.Name, a.Socket, func(info plugins.Info) {
		attached(control.Attached{Name: info.Name, Version: info.Version})
	})
}

// Apps returns the apps of all workspaces, sorted by workspace and name.
func (s *Server) Apps() []control.App {
	list := []control.App{}
	all := s.apps.All()
	for _, workspace := range slices.Sorted(maps.Keys(all)) {
		for _, a := range all[workspace] {
			list = append(list, control.App{Workspace: workspace, Name: a.Name, Version: a.Version, Status: string(a.Status), LastErr: a.LastError})
		}
	}
	return list
}

// pluginStates returns the states of the plugins for GET /v1/plugins: the same as for the operator's commands, without
// details about this machine.
func (s *Server) pluginStates() []adminapi.Plugin {
	var all []adminapi.Plugin
	for _, p := range s.host.Status() {
		all = append(all, adminapi.Plugin{
			Kind: string(p.Kind), Name: p.Name, Adapter: p.Adapter, Version: p.Version, State: p.State, Generation: p.Restarts + 1,
			Since: p.Since, Degraded: p.Degraded, Protocol: p.Protocol, Calls: p.Calls, Errors: p.Failures, LastError: p.LastErr,
		})
	}
	return all
}

// AppRuns waits until an app in the default workspace is running, and reports whether it is. It returns false immediately
// for an app that is dead, or that somebody stopped. It waits for an app that is stopped only because its start has
// not begun yet and, until ctx ends, for an app that is not installed yet.
func (s *Server) AppRuns(ctx context.Context, name string) bool {
	return appRuns(ctx, s.apps, s.store, name)
}

// appStates is the part of apps.Manager that appRuns needs.
type appStates interface {
	Health(workspace string) []core.AppHealth
}

// installations is the part of the store that appRuns needs.
type installations interface {
	Installation(ctx context.Context, workspace, name string) (core.Installation, error)
}

func appRuns(ctx context.Context, apps appStates, records installations, name string) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		all := apps.Health(core.DefaultWorkspaceID)
		if i := slices.IndexFunc(all, func(a core.AppHealth) bool { return a.Name == name }); i >= 0 {
			switch all[i].State {
			case core.StateRunning:
				return true
			case core.StateDead:
				return false
			case core.StateStopped:
				if record, err := records.Installation(ctx, core.DefaultWorkspaceID, name); err == nil && !record.Running {
					return false
				}
			default:
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}
