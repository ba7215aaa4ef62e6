package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

const maxGroups = 500 // conversations in one report

const dayMillis = 24 * 60 * 60 * 1000

// PutUsage stores the usage of a model call that added no message, for example to find a title. The usage of other
// calls is stored with their messages (AppendMessages). A missing time means now.
func (s *Store) PutUsage(ctx context.Context, u core.Usage) error {
	return s.db.UpdateGrouped(ctx, "storing usage", func(ctx context.Context, tx *sql.Tx) error { return putUsage(ctx, tx, u, time.Now()) })
}

func putUsage(ctx context.Context, tx *sql.Tx, u core.Usage, now time.Time) error {
	if u.At.IsZero() {
		u.At = now
	}
	var conversation *int64
	if u.Conversation != "" {
		key, err := conversationKey(u.Conversation)
		if err != nil {
			return err
		}
		conversation = &key
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO usage_records (id, workspace, user_id, conversation, model, used_at,
			input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd, llm_ms, tool_calls)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
		randomKey(), u.Workspace, u.User, conversation, u.Model, database.Millis(u.At),
		u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.CostUSD, u.LLM.Milliseconds(), u.ToolCalls)
	return err
}

// usageSums selects the columns that scanTotals reads, in order.
const usageSums = `COUNT(*), COUNT(cost_usd), COUNT(DISTINCT conversation),
	CAST(COALESCE(SUM(input_tokens), 0) AS BIGINT), CAST(COALESCE(SUM(output_tokens), 0) AS BIGINT),
	CAST(COALESCE(SUM(cache_read_tokens), 0) AS BIGINT), CAST(COALESCE(SUM(cache_write_tokens), 0) AS BIGINT),
	SUM(cost_usd), CAST(COALESCE(SUM(llm_ms), 0) AS BIGINT), CAST(COALESCE(SUM(tool_calls), 0) AS BIGINT)`

func scanTotals(row database.Row, key any) (core.UsageTotals, error) {
	var t core.UsageTotals
	var priced int64
	err := row.Scan(key, &t.LLMCalls, &priced, &t.Conversations, &t.InputTokens, &t.OutputTokens,
		&t.CacheReadTokens, &t.CacheWriteTokens, &t.CostUSD, &t.LLMMs, &t.ToolCalls)
	t.UnpricedCalls = t.LLMCalls - priced
	return t, err
}

// Usage reports the usage of a workspace's model calls, from one snapshot.
func (s *Store) Usage(ctx context.Context, q core.UsageQuery) (core.UsageReport, error) {
	report := core.UsageReport{Models: []core.ModelUsage{}, Breakdown: []core.GroupUsage{}}
	err := s.db.View(ctx, "reading the usage", func(ctx context.Context, tx *sql.Tx) error {
		groups, err := usageGroups(ctx, tx, q, `''`, ``)
		if err != nil {
			return err
		}
		if len(groups) > 0 {
			report.Totals = groups[0].UsageTotals
		}
		models, err := usageGroups(ctx, tx, q, `model`, `ORDER BY SUM(input_tokens + output_tokens) DESC, 1`)
		if err != nil {
			return err
		}
		for _, m := range models {
			report.Models = append(report.Models, core.ModelUsage{Model: m.Key, UsageTotals: m.UsageTotals})
		}
		if q.GroupBy == core.UsageByModel {
			report.Breakdown = append(report.Breakdown, models...)
			return nil
		}
		groups, err = breakdown(ctx, tx, q)
		report.Breakdown = append(report.Breakdown, groups...)
		return err
	})
	return report, err
}

func breakdown(ctx context.Context, tx *sql.Tx, q core.UsageQuery) ([]core.GroupUsage, error) {
	if q.GroupBy == core.UsageByUser {
		return usageByUser(ctx, tx, q)
	}
	if q.GroupBy == core.UsageByConversation {
		return usageGroups(ctx, tx, q, `conversation`, fmt.Sprintf(`ORDER BY SUM(input_tokens + output_tokens) DESC, 1 LIMIT %d`, maxGroups))
	}
	return usageGroups(ctx, tx, q, fmt.Sprintf(`used_at / %d`, dayMillis), `ORDER BY 1`)
}

// usageGroups adds up the requested usage, grouped by an expression that yields the keys.
func usageGroups(ctx context.Context, tx *sql.Tx, q core.UsageQuery, by, order string) ([]core.GroupUsage, error) {
	query, args := `FROM usage_records WHERE workspace = $1 AND used_at >= $2`, []any{q.Workspace, int64(0)}
	if !q.From.IsZero() {
		args[1] = database.Millis(q.From)
	}
	if !q.To.IsZero() {
		args = append(args, database.Millis(q.To))
		query += fmt.Sprintf(` AND used_at < $%d`, len(args))
	}
	if q.User != "" {
		args = append(args, q.User)
		query += fmt.Sprintf(` AND user_id = $%d`, len(args))
	}
	if by != `''` {
		query += ` GROUP BY ` + by
	}
	return database.Collect(ctx, tx, `SELECT `+by+`, `+usageSums+` `+query+` `+order, args, func(row database.Row) (g core.GroupUsage, err error) {
		var key any
		g.UsageTotals, err = scanTotals(row, &key)
		g.Key = groupKey(key, q.GroupBy)
		return g, err
	})
}

// groupKey returns a group's key in the form that a report shows. In the database it is a string, a number or NULL.
func groupKey(key any, by core.UsageGroup) string {
	switch key := key.(type) {
	case string:
		return key
	case []byte:
		return string(key)
	case int64:
		if by == core.UsageByConversation {
			return conversationID(key)
		}
		return database.FromMillis(key * dayMillis).Format(time.DateOnly)
	}
	return ""
}

// usageByUser adds up the usage by user, with the email or the name of users who still exist.
func usageByUser(ctx context.Context, tx *sql.Tx, q core.UsageQuery) ([]core.GroupUsage, error) {
	groups, err := usageGroups(ctx, tx, q, `user_id`, fmt.Sprintf(`ORDER BY SUM(input_tokens + output_tokens) DESC, 1 LIMIT %d`, maxGroups))
	if err != nil {
		return nil, err
	}
	for i := range groups {
		user, err := findUser(ctx, tx, groups[i].Key)
		switch {
		case err == nil:
			groups[i].Label = cmp.Or(user.Email, user.DisplayName)
		case core.CodeOf(err) != core.CodeNotFound:
			return nil, err
		}
	}
	return groups, nil
}
