package adminapi

import (
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/respond"
)

// runSystem responds with the result of one of the server's own tools: what a model may do through
// system__<tool>, a program may do through /v1, under the same feature flags and roles.
func (h *Handlers) runSystem(c *fiber.Ctx, caller core.Caller, tool string, arguments map[string]any) error {
	result, err := h.Tools.RunSystem(c.UserContext(), caller, tool, mustEncode(arguments))
	if err != nil {
		return err
	}
	return respond.JSON(c, result)
}

// mustEncode encodes texts and numbers, which cannot fail.
func mustEncode(arguments map[string]any) json.RawMessage {
	encoded, err := json.Marshal(arguments)
	if err != nil {
		panic(err)
	}
	return encoded
}
