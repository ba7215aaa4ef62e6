package respond

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core/stream"
)

// CancelOnDisconnect returns the request's context, which also ends when the client disconnects.
// done must be called before the handler returns.
func CancelOnDisconnect(c *fiber.Ctx) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(c.UserContext())
	peer := stream.WatchPeer(c.Context().Conn(), cancel)
	return ctx, func() {
		peer.Stop()
		cancel()
	}
}
