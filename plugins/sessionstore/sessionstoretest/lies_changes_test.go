package sessionstoretest_test

import (
	"context"
	"time"
)

func replaces(replace func(*call) (bool, error)) func(*store) {
	return func(s *store) { s.replace = replace }
}

// does changes how a store runs its statements.
func does(do func(s *store, ctx context.Context, statement func(rows, time.Time)) error) func(*store) {
	return func(s *store) {
		s.do = func(ctx context.Context, statement func(rows, time.Time)) error { return do(s, ctx, statement) }
	}
}

// before runs first in the transaction of each statement.
func before(first func(s *store, all rows, now time.Time)) func(*store) {
	return does(func(s *store, ctx context.Context, statement func(rows, time.Time)) error {
		return s.db.do(ctx, func(all rows, now time.Time) {
			first(s, all, now)
			statement(all, now)
		})
	})
}

// owners makes a store compare owners in another form.
func owners(form func(string) string) func(*store) {
	return replaces(func(c *call) (bool, error) {
		if before, err := c.rightGet(); err == nil && form(before.Owner) == form(c.owner) {
			c.owner = before.Owner
		}
		return c.rightReplace()
	})
}
