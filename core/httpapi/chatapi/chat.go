package chatapi

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/chat/elicit"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/stream"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// SendMessage handles POST /v1/chat. It runs the message to completion and returns the answer. The run is cancelled
// when the caller loses their rights and, unless it is detached, when the client disconnects.
func (h *Handlers) SendMessage(c *fiber.Ctx, caller core.Caller, r chat.Request) (any, error) {
	a, err := h.admit(c, caller, r)
	if err != nil {
		return nil, err
	}
	if a.queued != nil {
		return a.queued, nil
	}
	ctx, cancel := context.WithCancel(c.UserContext())
	defer cancel()
	if r.Detach {
		live := h.Chat.Detach(a.run, a.within, a.release)
		peer := stream.WatchPeer(c.Context().Conn(), cancel)
		defer peer.Stop()
		return answered(live.Wait(ctx))
	}
	defer a.release()
	ctx, stop := a.within(ctx)
	defer stop()
	peer := stream.WatchPeer(c.Context().Conn(), cancel)
	defer peer.Stop()
	return answered(a.run.Do(ctx, nil))
}

// answered returns the response for a run.
func answered(a chat.Answer, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return a, nil
}

// StreamMessage handles POST /v1/chat/stream. It streams the events of the run, which is cancelled for the same reasons
// as in SendMessage. Errors that occur before the run starts are ordinary error responses.
func (h *Handlers) StreamMessage(c *fiber.Ctx, caller core.Caller, r chat.Request) (any, error) {
	a, err := h.admit(c, caller, r)
	if err != nil {
		return nil, err
	}
	if a.queued != nil {
		return a.queued, nil
	}
	if r.Detach {
		return nil, h.follow(c, caller, h.Chat.Detach(a.run, a.within, a.release), func() {})
	}
	err = h.Streams.Open(c, stream.Response, func(ctx context.Context, w *stream.Writer) {
		defer a.release()
		defer httpio.KeepAlive(w, h.Quiet)()
		ctx, stop := a.within(ctx)
		defer stop()
		_, _ = a.run.Do(ctx, func(e chat.Event) { h.sendChat(w, e) }) // the error was sent as the last event
	})
	if err != nil {
		a.release()
		a.run.Abandon()
	}
	return nil, err
}

// admitted is a run that may start. The contexts that within returns end when the caller loses their rights. release
// must be called when the run has ended.
type admitted struct {
	run     *chat.Run
	within  func(context.Context) (context.Context, context.CancelFunc)
	release func()
	queued  *chat.Answer // the response if the message was queued instead
}

// admit admits a run or, if the request allows it, queues the message.
func (h *Handlers) admit(c *fiber.Ctx, caller core.Caller, r chat.Request) (a admitted, err error) {
	cred, err := authn.FromRequest(c)
	if err != nil {
		return a, err
	}
	span, origin := tracing.Of(c.UserContext()), core.OriginOf(c.UserContext())
	within := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return h.Authn.Watch(core.WithOrigin(span.In(ctx), &origin), cred, caller, nil)
	}
	for {
		if r.Queue {
			q, err := h.Chat.Queue(c.UserContext(), caller, r, func(ctx context.Context, r chat.Request) error {
				now, err := h.Authn.Check(ctx, cred, caller)
				if err != nil {
					return err
				}
				a, err := h.begin(ctx, cred, now, r)
				if err == nil {
					a.within = within
					h.Chat.Detach(a.run, a.within, a.release)
				}
				return err
			})
			if err != nil {
				return a, err
			}
			if q != nil {
				c.Status(fiber.StatusAccepted).Location("/v1/conversations/" + r.ConversationID + "/queue")
				a.queued = &chat.Answer{
					ConversationID: r.ConversationID, WorkspaceID: caller.Workspace.ID, ToolCalls: []chat.ToolCall{},
					StopReason: chat.Queued, StopMessage: "The message is queued until the run in progress ends.",
				}
				return a, nil
			}
		}
		a, err = h.begin(c.UserContext(), cred, caller, r)
		if !r.Queue || core.CodeOf(err) != core.CodeRunInProgress { // queue again if another run started in the meantime
			a.within = within
			return a, err
		}
	}
}

func (h *Handlers) begin(ctx context.Context, cred authn.Credentials, caller core.Caller, r chat.Request) (a admitted, err error) {
	if a.release, err = h.Chat.AcquireRun(ctx, caller); err != nil {
		return a, err
	}
	if a.run, err = h.Chat.Begin(ctx, caller, r); err != nil {
		a.release()
		return a, err
	}
	a.run.Guard(func(ctx context.Context) (core.Caller, error) { return h.Authn.Check(ctx, cred, caller) })
	return a, nil
}

type queuedMessage struct {
	ID string `json:"id"`
	messageResponse
	Attachments []chat.Attachment `json:"attachments,omitempty"` // only for a withdrawn message, so that it can be sent again
}

type queuedResponse struct {
	ConversationID string         `json:"conversationId"`
	Queued         *queuedMessage `json:"queued"`
}

func queuedOf(conversation string, q *core.QueuedMessage) queuedResponse {
	r := queuedResponse{ConversationID: conversation}
	if q != nil {
		r.Queued = &queuedMessage{ID: q.ID, messageResponse: messagesOf([]core.Message{q.Message})[0]}
	}
	return r
}

// GetQueued handles GET /v1/conversations/:id/queue: the message that is waiting for the run to end, or null.
func (h *Handlers) GetQueued(c *fiber.Ctx, caller core.Caller) (any, error) {
	id := c.Params("id")
	if _, err := h.Chat.Conversation(c.UserContext(), caller, id); err != nil {
		return nil, err
	}
	q, err := h.Chat.Queued(c.UserContext(), caller, id)
	switch {
	case core.CodeOf(err) == core.CodeNotFound:
		return queuedOf(id, nil), nil
	case err != nil:
		return nil, err
	}
	return queuedOf(id, &q), nil
}

// WithdrawQueued handles DELETE /v1/conversations/:id/queue. It returns the message that it removed from the queue, with
// its files.
func (h *Handlers) WithdrawQueued(c *fiber.Ctx, caller core.Caller) (any, error) {
	id := c.Params("id")
	q, err := h.Chat.Withdraw(c.UserContext(), caller, id)
	if err != nil {
		return nil, err
	}
	withdrawn := queuedOf(id, &q)
	withdrawn.Queued.Attachments = chat.AttachmentsOf(q)
	return withdrawn, nil
}

// FollowRun handles GET /v1/conversations/:id/run: the events of the conversation's detached run. It sends the events
// after Last-Event-ID, or all events without this header, and then new events as they occur.
func (h *Handlers) FollowRun(c *fiber.Ctx, caller core.Caller) (any, error) {
	live, err := h.Chat.Live(c.UserContext(), caller, c.Params("id"))
	if err != nil {
		return nil, err
	}
	release, err := h.Limits.Acquire(limits.Streams, caller.User.ID)
	if err != nil {
		return nil, err
	}
	return nil, h.follow(c, caller, live, release)
}

// StopRun handles DELETE /v1/conversations/:id/run. It responds once the conversation can start another run.
func (h *Handlers) StopRun(c *fiber.Ctx, caller core.Caller) (any, error) {
	if err := h.Chat.StopRun(c.UserContext(), caller, c.Params("id")); err != nil {
		return nil, err
	}
	return fiber.Map{"stopped": true}, nil
}

// follow streams the events of a run for as long as the caller is admitted. It calls release at the end.
func (h *Handlers) follow(c *fiber.Ctx, caller core.Caller, live chat.Follower, release func()) error {
	cred, err := authn.FromRequest(c)
	if err != nil {
		release()
		return err
	}
	last := strings.Clone(c.Get("Last-Event-ID"))
	return h.Streams.Open(c, stream.Response, func(ctx context.Context, w *stream.Writer) {
		defer httpio.KeepAlive(w, h.Quiet)()
		ctx, stop := h.Authn.Watch(ctx, cred, caller, nil)
		defer stop()
		_ = live.Follow(ctx, last, w.EventWithID) // it ends when the client disconnects
	}, release)
}

// sendChat writes an event. Its error is ignored: the stream's context ends when the client disconnects.
func (h *Handlers) sendChat(w *stream.Writer, e chat.Event) {
	data, err := json.Marshal(e.Data)
	if err != nil {
		h.Log.Error("a chat event cannot be encoded as JSON", "event", e.Name, "error", err)
		return
	}
	_ = w.Event(e.Name, data)
}

type elicitationResponse struct {
	ID     string `json:"id"`
	Action string `json:"action"`
}

// AnswerElicitation handles POST /v1/chat/elicitations/:id: a person's reply to a question that an app asked in their
// chat stream.
func (h *Handlers) AnswerElicitation(c *fiber.Ctx, caller core.Caller, r elicit.Reply) (any, error) {
	id := c.Params("id")
	if err := h.Chat.Reply(c.UserContext(), caller, id, r); err != nil {
		return nil, err
	}
	return elicitationResponse{ID: id, Action: r.Action}, nil
}
