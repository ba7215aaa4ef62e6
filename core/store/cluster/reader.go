package cluster

import (
	"context"
	"time"
)

// read passes notices from other servers to the subscribers until ctx ends.
func (c *Cluster) read(ctx context.Context) {
	poll, purge := time.NewTicker(pollInterval), time.NewTicker(purgeInterval)
	defer poll.Stop()
	defer purge.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		case <-c.wake:
		case <-purge.C:
			_ = c.db.Exec(ctx, "deleting old notices", `DELETE FROM notices
				WHERE made_at < (EXTRACT(EPOCH FROM clock_timestamp() - INTERVAL '`+keepNotices+`') * 1000)::BIGINT`)
			continue
		}
		c.readAll(ctx)
	}
}

func (c *Cluster) readAll(ctx context.Context) {
	for {
		found, next, missed, err := readNotices(ctx, c.db, c.last)
		c.health.readDone(err)
		if err != nil {
			c.log.Debug("could not read changes by other servers; retrying later", "error", err)
			return
		}
		c.last = next
		if missed {
			c.log.Warn("missed changes by other servers; reading everything again")
			c.subscribers.notifyMissed()
		}
		for _, one := range found {
			if one.origin != c.id && !c.accept(one) {
				c.subscribers.notify(one)
			}
		}
		if len(found) == 0 {
			return
		}
	}
}
