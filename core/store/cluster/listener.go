package cluster

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/ropewalk/ropewalk/core/store/database"
)

// listenOn opens a notification connection.
func listenOn(ctx context.Context, c *pgx.ConnConfig) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return nil, err
	}
	free, err := database.AcquireInUse(ctx, conn, `SELECT pg_advisory_lock_shared($1)`)
	if err == nil && !free {
		err = errors.New("a backup is being restored: start the server when it has finished")
	}
	if err == nil {
		_, err = conn.Exec(ctx, `LISTEN ropewalk`)
	}
	if err != nil {
		closeConn(ctx, conn)
		return nil, err
	}
	return conn, nil
}

func closeConn(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = conn.Close(ctx)
}

// listen wakes the reader until ctx ends. If the connection breaks or goes silent, it opens another.
func (c *Cluster) listen(ctx context.Context, conn *pgx.Conn) {
	for {
		err := c.waitForNotices(ctx, conn)
		if ctx.Err() != nil {
			return
		}
		c.log.Warn("notification connection lost; polling for changes by other servers every second until it returns", "error", err)
		for conn = nil; conn == nil; {
			if !sleep(ctx, retryInterval) {
				return
			}
			conn = c.reconnect(ctx)
		}
		c.log.Info("notification connection restored")
	}
}

func (c *Cluster) reconnect(ctx context.Context) *pgx.Conn {
	ctx, cancel := context.WithTimeout(ctx, checkInterval+checkTimeout)
	defer cancel()
	conn, err := listenOn(ctx, c.config)
	if err != nil {
		return nil
	}
	return conn
}

// waitForNotices wakes the reader until the connection breaks or ctx ends, and then closes the connection. If
// nothing arrives, it checks the connection: a dead connection looks like one without notices.
func (c *Cluster) waitForNotices(ctx context.Context, conn *pgx.Conn) error {
	defer closeConn(ctx, conn)
	for {
		if err := c.waitOnce(ctx, conn); err != nil {
			return err
		}
		c.wakeReader()
	}
}

// waitOnce returns when there is a notice, or when none has come within checkInterval and a check has shown that
// the connection is alive.
func (c *Cluster) waitOnce(ctx context.Context, conn *pgx.Conn) error {
	quiet, cancel := context.WithTimeout(ctx, checkInterval)
	defer cancel()
	_, err := conn.WaitForNotification(quiet)
	if err == nil || ctx.Err() != nil || quiet.Err() == nil {
		return err
	}
	check, stop := context.WithTimeout(ctx, checkTimeout)
	defer stop()
	return conn.Ping(check)
}

func (c *Cluster) wakeReader() {
	select {
	case c.wake <- struct{}{}:
	default: // it is already awake
	}
}
