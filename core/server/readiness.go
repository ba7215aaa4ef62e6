package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/core/httpapi"
	"github.com/ropewalk/ropewalk/plugins"
)

// checks returns the checks for /readyz. They cover everything that a request may need. Registries are not included, because
// only installations need them, and a server that cannot install apps still serves them. If records cannot be written,
// the server is only unready if it refuses actions that cannot be recorded (audit.failClosed).
func (s *Server) checks() []httpapi.Check {
	home := s.config().Home
	all := []httpapi.Check{
		{Name: "store", Run: func(context.Context) error { return writable(home) }},
		{Name: "database", Run: s.store.CheckWritable},
		{Name: "sessionStore", Run: func(ctx context.Context) error { return s.host.Probe(ctx, plugins.KindSessionStore) }},
	}
	if s.store.Shared() {
		all = append(all, httpapi.Check{Name: "notices", Run: s.store.CheckNotices})
	}
	all = append(all, httpapi.Check{Name: "auth", Run: func(ctx context.Context) error { return s.host.Probe(ctx, plugins.KindAuth) }, When: s.hasProviders})
	all = append(all, httpapi.Check{Name: "identityProvider", Run: s.providers.check, When: s.hasProviders, Advisory: true})
	if s.audit.log != nil {
		all = append(all, httpapi.Check{Name: "audit", Run: s.checkAudit, Advisory: !s.config().Audit.FailClosed})
	}
	return all
}

// checkAudit fails if actions cannot currently be recorded.
func (s *Server) checkAudit(ctx context.Context) error {
	if err := s.audit.log.Ready(); err != nil {
		return err
	}
	return s.host.Probe(ctx, plugins.KindAudit)
}

// writable checks that the home, which contains apps' files and plugins' data, is writable. It writes a file
// and removes it.
func writable(home string) error {
	path := filepath.Join(home, ".writable")
	err := os.WriteFile(path, []byte("written by the readiness check\n"), 0o600)
	if removed := os.Remove(path); !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}
