package store

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core/store/database"
)

const (
	purgeInterval = 10 * time.Minute
	purgeBatch    = 5_000 // rows per transaction; other writes to the file wait for it
)

// Retention is how long records are kept; 0 means forever.
type Retention struct {
	Usage     time.Duration // the usage of each model call
	Approvals time.Duration // approvals, counted from their expiry
}

// startPurging deletes records older than the retention, immediately and then every ten minutes, until stop is
// called.
func (s *Store) startPurging(r Retention) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(purgeInterval)
		defer tick.Stop()
		for {
			if n, err := s.Purge(ctx, r); err != nil && ctx.Err() == nil {
				s.log.Warn("could not delete old records; retrying later", "error", err)
			} else if n > 0 {
				s.log.Info("old records deleted", "rows", n)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() error {
		cancel()
		wg.Wait()
		return nil
	}
}

// Purge deletes records older than the retention, expired kept results, old verdicts on tools, expired tasks, and
// uninstalled apps. It returns the number of rows, not counting those of the apps. If much of an SQLite file is unused
// afterwards, Purge shrinks it; PostgreSQL reuses the space on its own.
func (s *Store) Purge(ctx context.Context, r Retention) (rows int64, err error) {
	for _, old := range []struct {
		what   string
		delete string // deletes at most $2 rows from before $1
		keep   time.Duration
	}{
		{"deleting old usage", `DELETE FROM usage_records WHERE id IN (SELECT id FROM usage_records WHERE used_at < $1 LIMIT $2)`, r.Usage},
		{"deleting old approvals", `DELETE FROM approvals WHERE id IN (SELECT id FROM approvals WHERE expires_at < $1 LIMIT $2)`, r.Approvals},
		{"deleting kept results", deleteExpiredResults, time.Millisecond},
		{"deleting kept results from an earlier version", `DELETE FROM results WHERE id IN (SELECT id FROM results WHERE expires_at <= $1 LIMIT $2)`, time.Millisecond},
		{"deleting old verdicts on tools", deleteToolVerdicts, toolVerdictsKept},
		{"deleting expired tasks", deleteExpiredTasks, time.Millisecond},
	} {
		if old.keep <= 0 {
			continue
		}
		n, err := s.purgeBatches(ctx, old.what, old.delete, database.Millis(time.Now().Add(-old.keep)))
		rows += n
		if err != nil {
			return rows, err
		}
	}
	if err := s.PurgeUninstalled(ctx, "", ""); err != nil {
		return rows, err
	}
	if rows > 0 {
		err = s.db.Vacuum(ctx)
	}
	return rows, err
}

// purgeBatches runs a statement in transactions of a limited size until nothing is left to delete.
func (s *Store) purgeBatches(ctx context.Context, what, statement string, before int64) (rows int64, err error) {
	for {
		var n int64
		err := s.db.Update(ctx, what, func(ctx context.Context, tx *sql.Tx) error {
			result, err := tx.ExecContext(ctx, statement, before, purgeBatch)
			if err == nil {
				n, err = result.RowsAffected()
			}
			return err
		})
		if err != nil {
			return rows, err
		}
		if rows += n; n < purgeBatch {
			return rows, nil
		}
	}
}
