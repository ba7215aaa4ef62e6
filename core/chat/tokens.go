package chat

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// TokensToday returns how many input and output tokens the caller has used in the workspace since midnight UTC.
// Tokens read from or written to a cache are not counted.
func (e *Engine) TokensToday(ctx context.Context, c core.Caller) (int64, error) {
	report, err := e.store.Usage(ctx, core.UsageQuery{
		Workspace: c.Workspace.ID, User: c.User.ID, From: time.Now().UTC().Truncate(24 * time.Hour), GroupBy: core.UsageByModel,
	})
	return report.Totals.InputTokens + report.Totals.OutputTokens, err
}
