package httpapi

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core/stream"
)

// attended is the request's context, which ends also when its client leaves: nobody waits for the
// work any more. done must be called before the handler returns.
func attended(c *fiber.Ctx) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(c.UserContext())
	stop := stream.WatchPeer(c.Context().Conn(), cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}
