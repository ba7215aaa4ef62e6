package login

import (
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
)

// apiKey is what stands for a provider when somebody logs in with SERVICE_API_KEY.
const apiKey = "SERVICE_API_KEY"

// Attempt is a login that was tried: the browser is redirected either way, so that the response does not say how it
// ended. It is for the audit log.
type Attempt struct {
	User     core.User // of a login that succeeded
	Provider string    // "" when it is not known
	Err      error     // why it failed
}

type attemptKey struct{}

func noteAttempt(c *fiber.Ctx, a Attempt) { c.Context().SetUserValue(attemptKey{}, a) }

// AttemptOf returns the login that a request tried.
func AttemptOf(ctx *fasthttp.RequestCtx) (a Attempt, tried bool) {
	a, tried = ctx.UserValue(attemptKey{}).(Attempt)
	return a, tried
}
