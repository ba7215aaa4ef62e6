package store

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core/store/database"
)

const (
	purgeInterval = time.Hour
	purgeBatch    = 5_000 // rows of one transaction: others wait for the file that long

	// An SQLite file is compacted when this share of it, and this many bytes, are unused.
	vacuumShare = 0.25
	vacuumBytes = 16 << 20
)

// Retention is for how long records are kept; 0 means for ever.
type Retention struct {
	Usage time.Duration // what each model call used
}

// startPurging deletes what is older than the retention, at once and every hour, until stop is called.
func (s *Store) startPurging(r Retention) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(purgeInterval)
		defer tick.Stop()
		for {
			if n, err := s.Purge(ctx, r); err != nil && ctx.Err() == nil {
				s.log.Warn("old records not deleted; trying again later", "error", err)
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

// Purge deletes what is older than the retention, and returns how many rows. An SQLite file gets smaller
// when much of it is unused then; PostgreSQL reuses the space by itself.
func (s *Store) Purge(ctx context.Context, r Retention) (rows int64, err error) {
	if r.Usage <= 0 {
		return 0, nil
	}
	before := database.Millis(time.Now().Add(-r.Usage))
	for more := true; more; {
		var n int64
		err := s.db.Update(ctx, "deleting old usage", func(ctx context.Context, tx *sql.Tx) error {
			result, err := tx.ExecContext(ctx, `DELETE FROM usage_records WHERE id IN (SELECT id FROM usage_records WHERE used_at < $1 LIMIT $2)`, before, purgeBatch)
			if err == nil {
				n, err = result.RowsAffected()
			}
			return err
		})
		if err != nil {
			return rows, err
		}
		rows, more = rows+n, n == purgeBatch
	}
	if rows > 0 {
		err = s.db.Vacuum(ctx, vacuumShare, vacuumBytes)
	}
	return rows, err
}
