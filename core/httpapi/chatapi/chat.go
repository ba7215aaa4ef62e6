package chatapi

import (
	"context"
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
	"github.com/ropewalk/ropewalk/core/httpapi/respond"
	"github.com/ropewalk/ropewalk/core/stream"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// SendMessage is POST /v1/chat: it runs the message to its end. A client that disconnects cancels
// the run, and so does the end of the caller's rights.
func (h *Handlers) SendMessage(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[chat.Request](c.Context())
	if err != nil {
		return err
	}
	cred, err := authn.FromRequest(c)
	if err != nil {
		return err
	}
	release, err := h.acquireRun(c, caller)
	if err != nil {
		return err
	}
	run, err := h.Chat.Begin(c.UserContext(), caller, r)
	if err != nil {
		release()
		return err
	}
	defer release()
	ctx, cancel := h.Authn.Watch(c.UserContext(), cred, caller, false)
	defer cancel()
	peer := stream.WatchPeer(c.Context().Conn(), cancel)
	response, err := run.Do(ctx, nil)
	peer.Stop()
	if err != nil {
		return err
	}
	return c.JSON(response)
}

// StreamMessage is POST /v1/chat/stream: it streams the events of the run, which ends like that of SendMessage.
// Errors known before the run begins are ordinary error responses.
func (h *Handlers) StreamMessage(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[chat.Request](c.Context())
	if err != nil {
		return err
	}
	cred, err := authn.FromRequest(c)
	if err != nil {
		return err
	}
	release, err := h.acquireRun(c, caller)
	if err != nil {
		return err
	}
	run, err := h.Chat.Begin(c.UserContext(), caller, r)
	if err != nil {
		release()
		return err
	}
	span := tracing.Of(c.UserContext())
	err = h.Streams.Open(c, stream.Answer, func(ctx context.Context, w *stream.Writer) {
		defer release()
		defer respond.KeepAlive(w, h.Quiet)()
		ctx, stop := h.Authn.Watch(ctx, cred, caller, false)
		defer stop()
		_, _ = run.Do(span.In(ctx), func(e chat.Event) { h.sendChat(w, e) }) // the error was sent as the last event
	})
	if err != nil {
		release()
		run.Abandon()
	}
	return err
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
