package login

import (
	"mime"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
)

// BackchannelLogout is POST /v1/auth/backchannel-logout: the identity provider sends a logout token in a
// form (OpenID Connect Back-Channel Logout 1.0 section 2.5).
func (h *Handlers) BackchannelLogout(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	if kind, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType)); err != nil || kind != fiber.MIMEApplicationForm {
		return core.Errorf(core.CodeUnsupportedMedia, "the Content-Type must be application/x-www-form-urlencoded")
	}
	tokens := c.Context().PostArgs().PeekMulti("logout_token")
	if len(tokens) != 1 {
		return core.Errorf(core.CodeBadRequest, "the form must have one logout_token")
	}
	if err := h.Access.BackchannelLogout(c.UserContext(), string(tokens[0])); err != nil {
		return err
	}
	return c.JSON(okResponse{OK: true})
}
