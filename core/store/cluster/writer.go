package cluster

import (
	"context"
	"database/sql"
)

// write writes the notices in the outbox until ctx ends, and then those that are still queued.
func (c *Cluster) write(ctx context.Context) {
	var batch []notice
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case first := <-c.outbox:
			if batch = c.addQueued([]notice{first}); c.writeBatch(ctx, batch) {
				batch = nil
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	for batch = c.addQueued(batch); len(batch) > 0 && c.writeBatch(ctx, batch); {
		batch = c.addQueued(nil)
	}
}

// addQueued adds queued notices from the outbox to a batch, up to maxWriteAtOnce.
func (c *Cluster) addQueued(batch []notice) []notice {
	for len(batch) < maxWriteAtOnce {
		select {
		case next := <-c.outbox:
			batch = append(batch, next)
			continue
		default:
		}
		break
	}
	return batch
}

// writeBatch retries until the batch is written. It returns false if ctx ends first.
func (c *Cluster) writeBatch(ctx context.Context, batch []notice) bool {
	c.health.writeBegins()
	for warned := false; ; warned = true {
		err := c.db.Update(ctx, "writing notices", func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, `SET LOCAL synchronous_commit = off`); err != nil { // events need not survive a crash
				return err
			}
			return writeNotices(ctx, tx, c.id, batch)
		})
		c.health.writeDone(err)
		if err == nil {
			return true
		}
		if !warned && ctx.Err() == nil {
			c.log.Warn("could not send events to the other servers; they are queued", "events", len(batch), "error", err)
		}
		if !sleep(ctx, retryInterval) {
			return false
		}
	}
}
