package httpapi

import (
	"context"
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/stream"
)

// streamEvents is GET /v1/events: the events of the caller's workspace, from the moment the client
// sees the headers. The credentials are checked again at each heartbeat.
func (s *Server) streamEvents(c *fiber.Ctx, caller core.Caller) error {
	cred, err := credentialsOf(c)
	if err != nil {
		return err
	}
	workspace := caller.Workspace.ID
	cred.workspace = workspace
	return s.streams.Open(c, stream.Standing, func(ctx context.Context, w *stream.Writer) {
		reader := s.events.Subscribe(workspace)
		defer reader.Close()
		if w.Flush() != nil {
			return
		}
		for {
			select {
			case <-ctx.Done():
				return
			case e, open := <-reader.C:
				if !open || (e.Name == core.EventHeartbeat && s.revoked(ctx, cred)) || s.send(w, e) != nil {
					return
				}
			}
		}
	})
}

func (s *Server) send(w *stream.Writer, e core.Event) error {
	data, err := json.Marshal(e.Data)
	if err != nil {
		s.log.Error("an event cannot be encoded as JSON", "event", e.Name, "error", err)
		return nil
	}
	return w.Event(e.Name, data)
}

// revoked reports whether the credentials no longer allow access to the workspace. It returns false
// when that cannot be determined.
func (s *Server) revoked(ctx context.Context, cred credentials) bool {
	_, err := s.caller(ctx, cred)
	if err == nil {
		return false
	}
	code := core.CodeOf(err)
	return code == core.CodeUnauthenticated || code == core.CodeWorkspaceDenied
}
