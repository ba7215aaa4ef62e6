package login

import (
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
)

// apiKey is the provider name in the audit records of logins with SERVICE_API_KEY.
const apiKey = "SERVICE_API_KEY"

// Attempt is the outcome of a login attempt, for the audit log. The response does not show the outcome, because the
// browser is redirected either way.
type Attempt struct {
	User     core.User // set if the login succeeded
	Provider string    // "" if unknown
	Err      error     // why the login failed; nil if it succeeded
}

type attemptKey struct{}

func noteAttempt(c *fiber.Ctx, a Attempt) { c.Context().SetUserValue(attemptKey{}, a) }

// AttemptOf returns the login attempt that a request made.
func AttemptOf(ctx *fasthttp.RequestCtx) (a Attempt, tried bool) {
	a, tried = ctx.UserValue(attemptKey{}).(Attempt)
	return a, tried
}
