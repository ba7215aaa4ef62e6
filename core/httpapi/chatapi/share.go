package chatapi

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/limits"
)

// acquireRun counts a chat run against the caller's share, and refuses it when the caller has used the
// tokens of the day.
func (h *Handlers) acquireRun(c *fiber.Ctx, caller core.Caller) (release func(), err error) {
	if limit := h.TokensPerDay; limit > 0 {
		used, err := h.Chat.TokensToday(c.UserContext(), caller)
		if err != nil {
			return nil, err
		}
		if used >= limit {
			return nil, core.Errorf(core.CodeRateLimited, "%d tokens were used today: the limit is %d (limits.tokensPerDay)", used, limit).
				WithRetryAfter(time.Until(time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)))
		}
	}
	return h.Limits.Acquire(limits.ChatRuns, caller.User.ID)
}
