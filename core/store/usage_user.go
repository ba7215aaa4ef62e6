package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

	"github.com/ropewalk/ropewalk/core"
)

// usageByUser sums the usage by user, with the email or the name of those who still exist.
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
