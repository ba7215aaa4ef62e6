package trustapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
)

type pinsResponse struct {
	Pins []core.PinChange `json:"pins"`
}

// ListPins is GET /v1/pins.
func (h *Handlers) ListPins(c *fiber.Ctx, caller core.Caller) error {
	changes, err := h.Pins.Changes(c.UserContext(), caller.Workspace.ID)
	if err != nil {
		return err
	}
	return c.JSON(pinsResponse{Pins: append([]core.PinChange{}, changes...)})
}

type decisionRequest struct {
	Decision string `json:"decision"`
}

// DecidePin is POST /v1/pins/:id.
func (h *Handlers) DecidePin(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[decisionRequest](c.Context())
	if err != nil {
		return err
	}
	if r.Decision != "accept" && r.Decision != "refuse" {
		return core.Errorf(core.CodeBadRequest, "decision must be accept or refuse")
	}
	if err := caller.MayAcceptTools(); err != nil {
		return err
	}
	change, err := h.Pins.Decide(c.UserContext(), caller, c.Params("id"), r.Decision == "accept")
	if err != nil {
		return err
	}
	return c.JSON(change)
}
