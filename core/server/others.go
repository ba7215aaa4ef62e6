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

// Several servers may share one PostgreSQL database. What is read from it each time, such as
// conversations, the choice of models and logins, needs nothing here. Apps are followed by the yard,
// events by the bus; what is left is what this server remembers of people, and its files of skills.

// cluster is what the manager of apps follows; nil for a server on its own.
func (s *Server) cluster() apps.Cluster {
	if !s.store.Shared() {
		return nil
	}
	return s.store
}

// logins is where browser logins under way are kept; nil for the memory of a server on its own.
func (s *Server) logins() access.Logins {
	if !s.store.Shared() {
		return nil
	}
	return s.store
}

// joinEvents has the readers of all servers get the events of each.
func (s *Server) joinEvents() {
	if !s.store.Shared() {
		return
	}
	s.bus.Join(relay{s.store, func(workspace, name string) bool {
		_, err := s.yard.App(workspace, name)
		return err == nil
	}})
}

// followOthers follows what other servers change, until the server closes.
func (s *Server) followOthers() {
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
			case core.ChangeAll:
				s.access.MembersChanged("")
				s.syncSkills(ctx, skill.KeptPrefix)
			default: // apps are the yard's
			}
		}
	}()
	s.closers.add("changes of other servers", func(context.Context) error {
		stop()
		<-ended
		return nil
	})
}

// syncSkills writes the skills that other servers have written, again and again until that worked.
func (s *Server) syncSkills(ctx context.Context, prefix string) {
	for {
		err := s.skills.Sync(ctx, prefix)
		if err == nil || ctx.Err() != nil {
			return
		}
		s.log.Warn("Skills of other servers could not be taken over; it is tried again", "error", err)
		select {
		case <-time.After(10 * time.Second):
		case <-ctx.Done():
		}
	}
}
