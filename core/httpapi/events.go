package httpapi

import (
	"context"
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/stream"
)

// streamEvents is GET /v1/events (spec 4.9 and part 6): the events of the caller's workspace, from
// the moment the client sees the headers. At each heartbeat the caller must still be who may see
// them: a login that ended, or a membership that was taken away, ends the stream.
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
		s.log.Error("An event cannot be written as JSON", "event", e.Name, "error", err)
		return nil
	}
	return w.Event(e.Name, data)
}

// revoked reports whether the credentials no longer open the workspace. When that cannot be told,
// they do: the stream was opened by someone who could.
func (s *Server) revoked(ctx context.Context, cred credentials) bool {
	_, err := s.caller(ctx, cred)
	if err == nil {
		return false
	}
	code := core.CodeOf(err)
	return code == core.CodeUnauthenticated || code == core.CodeWorkspaceDenied
}
