package chatapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/httpapi/respond"
)

type skillsResponse struct {
	Skills []skill.Skill `json:"skills"`
}

// ListSkills is GET /v1/skills.
func (h *Handlers) ListSkills(c *fiber.Ctx, caller core.Caller) error {
	return c.JSON(skillsResponse{Skills: respond.OrEmpty(h.Chat.Skills(caller))})
}
