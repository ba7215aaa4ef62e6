package httpapi

import (
	"context"
	"encoding/json"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/chat/elicit"
	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
	"github.com/ropewalk/ropewalk/core/stream"
)

// Chat runs conversations with a model. Its errors are core.Errors.
type Chat interface {
	Begin(ctx context.Context, c core.Caller, r chat.Request) (*chat.Run, error)
	Reply(ctx context.Context, c core.Caller, id string, r elicit.Reply) error
	Model(ctx context.Context) string
	TokensToday(ctx context.Context, c core.Caller) (int64, error)
	ModelSettings(ctx context.Context) (core.ModelSettings, error)

	Conversations(ctx context.Context, c core.Caller, q core.ConversationQuery) (core.ConversationPage, error)
	Recent(ctx context.Context, c core.Caller) ([]core.Conversation, error)
	Conversation(ctx context.Context, c core.Caller, id string) (core.Conversation, error)
	History(ctx context.Context, c core.Caller, id string) ([]core.Message, error)
	Edit(ctx context.Context, c core.Caller, id string, title *string, metadata json.RawMessage) (core.Conversation, error)
	Fork(ctx context.Context, c core.Caller, id string, atMessage *int) (core.Conversation, error)
	Restore(ctx context.Context, c core.Caller, title *string, metadata json.RawMessage, messages []core.Message) (core.Conversation, error)
	Delete(ctx context.Context, c core.Caller, id string) error
	Usage(ctx context.Context, c core.Caller, q core.UsageQuery) (core.UsageReport, error)
	Attachment(ctx context.Context, c core.Caller, conversation, id string) (core.Attachment, error)
	Skills(c core.Caller) []skill.Skill
}

// sendMessage is POST /v1/chat: it runs the message to its end. A client that disconnects cancels the run.
func (s *Server) sendMessage(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[chat.Request](c.Context())
	if err != nil {
		return err
	}
	release, err := s.acquireRun(c, caller)
	if err != nil {
		return err
	}
	run, err := s.chat.Begin(c.UserContext(), caller, r)
	if err != nil {
		release()
		return err
	}
	defer release()
	ctx, cancel := context.WithCancel(c.UserContext())
	defer cancel()
	peer := stream.WatchPeer(c.Context().Conn(), cancel)
	response, err := run.Do(ctx, nil)
	peer.Stop()
	if err != nil {
		return err
	}
	return c.JSON(response)
}

// streamMessage is POST /v1/chat/stream: it streams the events of the run. Errors known before the run
// begins are ordinary error responses.
func (s *Server) streamMessage(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[chat.Request](c.Context())
	if err != nil {
		return err
	}
	release, err := s.acquireRun(c, caller)
	if err != nil {
		return err
	}
	run, err := s.chat.Begin(c.UserContext(), caller, r)
	if err != nil {
		release()
		return err
	}
	err = s.streams.Open(c, stream.Answer, func(ctx context.Context, w *stream.Writer) {
		defer release()
		defer keepAlive(w, s.options.Timeouts.Quiet)()
		_, _ = run.Do(ctx, func(e chat.Event) { s.sendChat(w, e) }) // the error was sent as the last event
	})
	if err != nil {
		release()
		run.Abandon()
	}
	return err
}

// sendChat writes an event. Its error is ignored: the stream's context ends when the client disconnects.
func (s *Server) sendChat(w *stream.Writer, e chat.Event) {
	data, err := json.Marshal(e.Data)
	if err != nil {
		s.log.Error("a chat event cannot be encoded as JSON", "event", e.Name, "error", err)
		return
	}
	_ = w.Event(e.Name, data)
}

// keepAlive writes a comment at the given interval until the returned function is called.
func keepAlive(w *stream.Writer, every time.Duration) (stop func()) {
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if w.Comment() != nil {
					return
				}
			}
		}
	}()
	return func() {
		close(done)
		<-over
	}
}

type skillsResponse struct {
	Skills []skill.Skill `json:"skills"`
}

// listSkills is GET /v1/skills.
func (s *Server) listSkills(c *fiber.Ctx, caller core.Caller) error {
	return c.JSON(skillsResponse{Skills: orEmpty(s.chat.Skills(caller))})
}
