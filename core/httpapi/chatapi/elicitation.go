package chatapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/elicit"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
)

type elicitationResponse struct {
	ID     string `json:"id"`
	Action string `json:"action"`
}

// AnswerElicitation is POST /v1/chat/elicitations/:id: what a person says to a question that an app
// asks in their chat stream.
func (h *Handlers) AnswerElicitation(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[elicit.Reply](c.Context())
	if err != nil {
		return err
	}
	id := c.Params("id")
	if err := h.Chat.Reply(c.UserContext(), caller, id, r); err != nil {
		return err
	}
	return c.JSON(elicitationResponse{ID: id, Action: r.Action})
}
