package server

import (
	"context"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/access"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/chat/skill"
)

// Several servers may share one PostgreSQL database. Apps are reconciled by the apps manager and events
// travel on the bus. This file handles the rest of what a server caches: users and members, and the
// files of skills. Everything else is read from the database each time.

// cluster is what the apps manager reconciles with; nil for a single server.
func (s *Server) cluster() apps.Cluster {
	if !s.store.Shared() {
		return nil
	}
	return s.store
}

// logins stores pending browser logins; nil keeps them in the memory of a single server.
func (s *Server) logins() access.Logins {
	if !s.store.Shared() {
		return nil
	}
	return s.store
}

// joinEvents sends the events of each server to the readers of all.
func (s *Server) joinEvents() {
	if !s.store.Shared() {
		return
	}
	s.bus.Join(relay{s.store, func(workspace, name string) bool {
		_, err := s.apps.App(workspace, name)
		return err == nil
	}})
}

// followCluster applies the changes that peer servers make, until the server closes.
func (s *Server) followCluster() {
	if !s.store.Shared() {
		return
	}
	s.skills.Share(s.store)
	ctx, stop := context.WithCancel(context.Background())
	changes, ended := s.store.Changes(ctx), make(chan struct{})
	go func() {
		defer close(ended)
		s.syncSkills(ctx, skill.KeptPrefix)
		for c := range changes {
			switch c.Kind {
			case core.ChangeMembers:
				s.access.MembersChanged(c.Name)
			case core.ChangeSetting:
				if strings.HasPrefix(c.Name, skill.KeptPrefix) {
					s.syncSkills(ctx, c.Name)
				}
			case core.ChangeToken:
				s.access.TokenRevoked(c.Name)
			case core.ChangeApproval:
				s.approvals.Wake(c.Name)
			case core.ChangePins:
				s.pins.Reload(c.Workspace, c.Name)
			case core.ChangeAll:
				s.access.MembersChanged("")
				s.pins.Reload("", "")
				s.approvals.Wake("")
				s.syncSkills(ctx, skill.KeptPrefix)
			default: // apps are reconciled by their manager
			}
		}
	}()
	s.closers.add("changes of peer servers", func(context.Context) error {
		stop()
		<-ended
		return nil
	})
}

// syncSkills copies the skills that peer servers have written, and retries until it succeeds.
func (s *Server) syncSkills(ctx context.Context, prefix string) {
	for {
		err := s.skills.Sync(ctx, prefix)
		if err == nil || ctx.Err() != nil {
			return
		}
		s.log.Warn("copying the skills of peer servers failed; retrying", "error", err)
		select {
		case <-time.After(10 * time.Second):
		case <-ctx.Done():
		}
	}
}
