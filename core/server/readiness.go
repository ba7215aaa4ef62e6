package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/core/control"
	"github.com/ropewalk/ropewalk/core/httpapi"
	"github.com/ropewalk/ropewalk/plugins"
)

// checks are what /readyz tests: all that a request may need. Registries are not among them: only an
// install needs one, and a server that cannot install still serves its apps. Audit sinks are where nothing is done
// that is not recorded.
func (s *Server) checks() []httpapi.Check {
	home := s.config.Home
	all := []httpapi.Check{
		{Name: "store", Run: func(context.Context) error { return writable(home) }},
		{Name: "database", Run: s.store.CheckWritable},
		{Name: "sessionStore", Run: func(ctx context.Context) error { return s.host.Probe(ctx, plugins.KindSessionStore) }},
	}
	if s.store.Shared() {
		all = append(all, httpapi.Check{Name: "notices", Run: s.store.CheckNotices})
	}
	if len(s.config.Auth) > 0 {
		all = append(all, httpapi.Check{Name: "auth", Run: func(ctx context.Context) error { return s.host.Probe(ctx, plugins.KindAuth) }})
	}
	if s.config.Audit.FailClosed {
		all = append(all, httpapi.Check{Name: "audit", Run: s.checkAudit})
	}
	return all
}

// checkAudit fails when what cannot be recorded would be refused now.
func (s *Server) checkAudit(ctx context.Context) error {
	if err := s.audit.Ready(); err != nil {
		return err
	}
	return s.host.Probe(ctx, plugins.KindAudit)
}

// writable writes a file into the home, which holds the files of apps and the data of plugins, and removes it.
func writable(home string) error {
	path := filepath.Join(home, ".writable")
	err := os.WriteFile(path, []byte("written by the readiness check\n"), 0o600)
	if removed := os.Remove(path); !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

// Readiness returns the outcome of each check of /readyz, with the reasons.
func (s *Server) Readiness() []control.Check {
	all := []control.Check{}
	for _, c := range s.http.Readiness() {
		one := control.Check{Name: c.Name}
		if c.Err != nil {
			one.Err = c.Err.Error()
		}
		all = append(all, one)
	}
	return all
}
