package httpapi

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/limits"
)

// principal is who a caller's use is counted for: the user, also when the user's API keys are used.
func principal(c core.Caller) string { return c.User.ID }

// acquireCall counts a tool call against the caller's share.
func (s *Server) acquireCall(caller core.Caller) (release func(), err error) {
	if err := s.options.Limits.AllowCall(principal(caller)); err != nil {
		return nil, err
	}
	return s.options.Limits.Acquire(limits.Calls, principal(caller))
}

// acquireRun counts a chat run against the caller's share, and refuses it when the caller has used the
// tokens of the day.
func (s *Server) acquireRun(c *fiber.Ctx, caller core.Caller) (release func(), err error) {
	if limit := s.options.TokensPerDay; limit > 0 {
		used, err := s.chat.TokensToday(c.UserContext(), caller)
		if err != nil {
			return nil, err
		}
		if used >= limit {
			return nil, core.Errorf(core.CodeRateLimited, "%d tokens were used today: the limit is %d (limits.tokensPerDay)", used, limit).
				WithRetryAfter(time.Until(time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)))
		}
	}
	return s.options.Limits.Acquire(limits.ChatRuns, principal(caller))
}
