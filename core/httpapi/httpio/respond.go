package httpio

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/stream"
)

// Deleted is the response to a request that deleted something.
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

// OrNull returns a pointer to text, or nil if it is empty.
func OrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// TimeOrNull returns a time in the format of responses, or nil for the zero time.
func TimeOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := core.Timestamp(t)
	return &text
}

// JSON sends encoded JSON unchanged.
func JSON(c *fiber.Ctx, encoded json.RawMessage) error {
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.Send(encoded)
}

// WithCode gives an error without a code the given code and message. It returns core.Errors and nil unchanged.
func WithCode(code core.Code, message string, err error) error {
	if _, ok := errors.AsType[*core.Error](err); ok || err == nil {
		return err
	}
	return core.Wrap(code, err, message+"; to find the reason, search the server log for this response's X-Request-Id")
}

// Cause returns the text of an error for the log: the response's message and the underlying cause, which the response
// omits.
func Cause(err error, e *core.Error) string {
	hidden := errors.Unwrap(e)
	if hidden == nil || strings.Contains(err.Error(), hidden.Error()) {
		return err.Error()
	}
	return err.Error() + ": " + hidden.Error()
}

// WithETag responds with a value and its entity tag, or with 304 if the client already has that version.
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

// KeepAlive writes a comment to the stream at the given interval until stop is called.
func KeepAlive(w *stream.Writer, every time.Duration) (stop func()) {
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if w.Comment() != nil {
					return
				}
			}
		}
	}()
	return func() {
		close(done)
		<-over
	}
}

// CancelOnDisconnect returns a context derived from the request's that also ends when the client disconnects. done must
// be called before the handler returns.
func CancelOnDisconnect(c *fiber.Ctx) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(c.UserContext())
	peer := stream.WatchPeer(c.Context().Conn(), cancel)
	return ctx, func() {
		peer.Stop()
		cancel()
	}
}
