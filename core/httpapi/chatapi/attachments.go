package chatapi

import (
	"mime"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
)

// GetAttachment is GET /v1/conversations/:id/attachments/:attachment. A browser must not run what somebody
// attached: it is a download, in a sandbox.
func (h *Handlers) GetAttachment(c *fiber.Ctx, caller core.Caller) error {
	a, err := h.Chat.Attachment(c.UserContext(), caller, c.Params("id"), c.Params("attachment"))
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, a.MIMEType)
	c.Set(fiber.HeaderContentDisposition, mime.FormatMediaType("attachment", map[string]string{"filename": a.Name}))
	c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; sandbox")
	c.Set(fiber.HeaderCacheControl, "private, max-age=3600, immutable")
	return c.Send(a.Content)
}
