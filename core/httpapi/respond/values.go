package respond

import (
	"encoding/json"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
)

// Deleted is the response of a request that deleted something.
type Deleted struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

// OrEmpty returns a list that encodes as [] instead of null.
func OrEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// OrNull returns text, nil when it is empty.
func OrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// TimeOrNull returns a time as responses write it, nil for the zero time.
func TimeOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := core.Timestamp(t)
	return &text
}

// JSON sends encoded JSON as it is.
func JSON(c *fiber.Ctx, encoded json.RawMessage) error {
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.Send(encoded)
}
