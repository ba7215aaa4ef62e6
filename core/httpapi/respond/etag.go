package respond

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// WithETag responds with a value and its entity tag, or with 304 when the client has it.
func WithETag(c *fiber.Ctx, value any) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(encoded)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	c.Set(fiber.HeaderETag, tag)
	for known := range strings.SplitSeq(c.Get(fiber.HeaderIfNoneMatch), ",") {
		known = strings.TrimPrefix(strings.TrimSpace(known), "W/")
		if known == tag || known == "*" {
			return c.SendStatus(fiber.StatusNotModified)
		}
	}
	return JSON(c, encoded)
}
