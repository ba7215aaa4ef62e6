package httpapi

import (
	"context"
	"encoding/json"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/stream"
)

// Chat lets people talk to a model. Its errors are core.Errors.
type Chat interface {
	Begin(ctx context.Context, c core.Caller, r chat.Request) (*chat.Run, error)
	Reply(ctx context.Context, c core.Caller, id string, r chat.Reply) error
	Model(ctx context.Context) string

	Conversations(ctx context.Context, c core.Caller, q core.ConversationQuery) (core.ConversationPage, error)
	Recent(ctx context.Context, c core.Caller) ([]core.Conversation, error)
	History(ctx context.Context, c core.Caller, id string) ([]core.Message, error)
	Edit(ctx context.Context, c core.Caller, id string, title *string, metadata json.RawMessage) (core.Conversation, error)
	Fork(ctx context.Context, c core.Caller, id string, atMessage *int) (core.Conversation, error)
	Delete(ctx context.Context, c core.Caller, id string) error
	Usage(ctx context.Context, c core.Caller, q core.UsageQuery) (core.UsageReport, error)
	Skills(c core.Caller) []skill.Skill
}

// sayChat is POST /v1/chat: the whole run in one answer. A client that leaves ends it.
func (s *Server) sayChat(c *fiber.Ctx, caller core.Caller) error {
	r, err := readBody[chat.Request](c)
	if err != nil {
		return err
	}
	run, err := s.chat.Begin(c.UserContext(), caller, r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.UserContext())
	defer cancel()
	stop := stream.WatchPeer(c.Context().Conn(), cancel)
	answer, err := run.Do(ctx, nil)
	stop()
	if err != nil {
		return err
	}
	return c.JSON(answer)
}

// streamChat is POST /v1/chat/stream: the run as it goes. What can be refused is refused before the
// stream begins.
func (s *Server) streamChat(c *fiber.Ctx, caller core.Caller) error {
	r, err := readBody[chat.Request](c)
	if err != nil {
		return err
	}
	run, err := s.chat.Begin(c.UserContext(), caller, r)
	if err != nil {
		return err
	}
	err = s.streams.Open(c, stream.Answer, func(ctx context.Context, w *stream.Writer) {
		defer keepAlive(w, s.options.Timeouts.Quiet)()
		_, _ = run.Do(ctx, func(e chat.Event) { s.sendChat(w, e) }) // its error was its last event
	})
	if err != nil {
		run.Abandon()
	}
	return err
}

// sendChat writes an event. When the reader is gone, the stream's context has ended already.
func (s *Server) sendChat(w *stream.Writer, e chat.Event) {
	data, err := json.Marshal(e.Data)
	if err != nil {
		s.log.Error("A chat event cannot be written as JSON", "event", e.Name, "error", err)
		return
	}
	_ = w.Event(e.Name, data)
}

// keepAlive writes a comment every so often until the returned function is called.
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

type skillsAnswer struct {
	Skills []skill.Skill `json:"skills"`
}

// listSkills is GET /v1/skills.
func (s *Server) listSkills(c *fiber.Ctx, caller core.Caller) error {
	return c.JSON(skillsAnswer{Skills: orEmpty(s.chat.Skills(caller))})
}
