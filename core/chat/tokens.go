package chat

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/limits"
)

// AcquireRun counts a run against the caller's share (limits.chatRuns). It refuses the run with core.CodeRateLimited if
// the share is taken, or if the caller has used up the daily tokens.
func (e *Engine) AcquireRun(ctx context.Context, c core.Caller) (release func(), err error) {
	if err := e.checkTokens(ctx, c, 0); err != nil {
		return nil, err
	}
	return e.limits.Acquire(limits.ChatRuns, c.User.ID)
}

// checkTokens returns core.CodeRateLimited if the caller has used up the daily tokens. more is the number of tokens
// that are not stored yet.
func (e *Engine) checkTokens(ctx context.Context, c core.Caller, more int64) error {
	if e.tokensPerDay == 0 {
		return nil
	}
	used, err := e.tokensToday(ctx, c)
	if err != nil {
		return err
	}
	if used += more; used < e.tokensPerDay {
		return nil
	}
	return core.Errorf(core.CodeRateLimited, "%d tokens were used today: the limit is %d (limits.tokensPerDay)", used, e.tokensPerDay).
		WithRetryAfter(time.Until(time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)))
}

// tokensToday returns how many input and output tokens the caller has used in the workspace since midnight UTC.
// Tokens read from or written to a cache are not counted.
func (e *Engine) tokensToday(ctx context.Context, c core.Caller) (int64, error) {
	report, err := e.store.Usage(ctx, core.UsageQuery{
		Workspace: c.Workspace.ID, User: c.User.ID, From: time.Now().UTC().Truncate(24 * time.Hour), GroupBy: core.UsageByModel,
	})
	return report.Totals.InputTokens + report.Totals.OutputTokens, err
}
