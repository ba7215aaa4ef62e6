package httpapi

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/stream"
)

// streamEvents handles GET /v1/events. It streams the events of the caller's workspace, from when the client receives
// the headers until the caller loses access.
func (s *Server) streamEvents(c *fiber.Ctx, caller core.Caller) (any, error) {
	cred, err := authn.FromViewer(c)
	if err != nil {
		return nil, err
	}
	workspace, user := caller.Workspace.ID, caller.User.ID
	release, err := s.options.Limits.Acquire(limits.Streams, user)
	if err != nil {
		return nil, err
	}
	return nil, s.streams.Open(c, stream.Standing, func(ctx context.Context, w *stream.Writer) {
		var current atomic.Pointer[core.Caller] // the caller with their current rights, which decide what they may see
		current.Store(&caller)
		ctx, stop := s.authn.Watch(ctx, cred, caller, func(now core.Caller) { current.Store(&now) })
		defer stop()
		reader := s.events.Subscribe(workspace, user)
		defer reader.Close()
		if w.Flush() != nil {
			return
		}
		for {
			select {
			case <-ctx.Done():
				return
			case e, open := <-reader.C:
				if !open || s.send(w, *current.Load(), e) != nil {
					return
				}
			}
		}
	}, release)
}

// send sends an event, unless it is about a tool that the caller cannot see.
func (s *Server) send(w *stream.Writer, caller core.Caller, e core.Event) error {
	data, err := json.Marshal(e.Data)
	if err != nil {
		s.log.Error("an event cannot be encoded as JSON", "event", e.Name, "error", err)
		return nil
	}
	if !s.tools.ShowsEvent(caller, data) {
		return nil
	}
	return w.Event(e.Name, data)
}
