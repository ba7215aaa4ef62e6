package store

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core/store/database"
)

// checkInterval is how long the result of a write check holds: each check waits for the disk.
const checkInterval = 2 * time.Second

// health is the result of the latest write check. The zero value has none.
type health struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// CheckWritable reports whether the state takes writes: core.CodeUnavailable with the reason when the
// database cannot be reached, its disk is full, or its file is gone. The result is at most 2 s old.
func (s *Store) CheckWritable(ctx context.Context) error {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	if time.Since(s.health.at) < checkInterval {
		return s.health.err
	}
	err := s.db.Update(ctx, "checking that the state is writable", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO counters (name, n) VALUES ('check', $1) ON CONFLICT (name) DO UPDATE SET n = excluded.n`, database.Millis(time.Now()))
		return err
	})
	if ctx.Err() == nil { // a caller that left says nothing about the state
		s.health.at, s.health.err = time.Now(), err
	}
	return err
}
