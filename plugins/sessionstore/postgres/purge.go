package postgres

import (
	"context"
	"time"
)

// purger runs a function at intervals until it is stopped.
type purger struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

func (p *purger) start(ctx context.Context, every time.Duration, purge func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	p.cancel, p.ended = cancel, make(chan struct{})
	go func() {
		defer close(p.ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				purge(ctx)
			}
		}
	}()
}

func (p *purger) stop() {
	if p.cancel != nil {
		p.cancel()
		<-p.ended
	}
}

// purgeExpired deletes expired rows in batches, so that no other statement waits for long. A failure is only logged,
// because the next round tries again.
func (s *Store) purgeExpired(ctx context.Context) {
	var total int64
	for {
		var deleted int64
		err := s.bounded(ctx, func(ctx context.Context) error {
			tag, err := s.pool.Exec(ctx, s.sql.purge)
			deleted = tag.RowsAffected()
			return err
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.log.Warn("deleting expired sessions failed; trying again later", "error", err.Error())
			return
		}
		total += deleted
		if deleted == 0 {
			break
		}
	}
	if total > 0 {
		s.log.Debug("deleted expired sessions", "sessions", total)
	}
}
