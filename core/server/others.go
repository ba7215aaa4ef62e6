package server

import (
	"context"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/access"
	"github.com/ropewalk/ropewalk/core/apps"
)

// Several servers may share one PostgreSQL database. What is read from it each time, such as
// conversations, the choice of models and logins, needs nothing here. Apps are followed by the yard,
// events by the bus; what is left is what this server remembers of people.

// deployment is what the yard follows; nil for a server on its own.
func (s *Server) deployment() apps.Deployment {
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

// followOthers forgets what other servers have changed, until the server closes.
func (s *Server) followOthers() {
	if !s.store.Shared() {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	changes, ended := s.store.Changes(ctx), make(chan struct{})
	go func() {
		defer close(ended)
		for c := range changes {
			switch c.Kind {
			case core.ChangeMembers:
				s.access.MembersChanged(c.Name)
			case core.ChangeAll:
				s.access.MembersChanged("")
			default: // apps are the yard's, settings are read when they are needed
			}
		}
	}()
	s.closers.add("changes of other servers", func(context.Context) error {
		stop()
		<-ended
		return nil
	})
}
