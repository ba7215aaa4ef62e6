package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/ropewalk/ropewalk/core/store/database"
)

// listenOn opens the notification connection of a server. It holds the server's presence lock as long as it is open.
func listenOn(ctx context.Context, c *pgx.ConnConfig, server string) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return nil, err
	}
	free, err := database.AcquireInUse(ctx, conn, `SELECT pg_advisory_lock_shared($1)`)
	if err == nil && !free {
		err = errors.New("a backup is being restored; start the server when that is done")
	}
	if err == nil {
		class, object := presenceLock(server)
		_, err = conn.Exec(ctx, `SELECT pg_advisory_lock_shared($1, $2)`, class, object)
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

// presenceLock returns the advisory lock that shows that a server exists.
func presenceLock(server string) (class, object int32) {
	sum := sha256.Sum256([]byte(server))
	return int32(binary.BigEndian.Uint32(sum[:4])), int32(binary.BigEndian.Uint32(sum[4:8])) //nolint:gosec // any bits will do
}

// exists reports whether a server of this version is connected to the database.
func (c *Cluster) exists(ctx context.Context, server string) (found bool, err error) {
	class, object := presenceLock(server)
	err = c.db.Get(ctx, "looking for another server", `SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
		AND classid::BIGINT = $1 AND objid::BIGINT = $2 AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`,
		[]any{int64(uint32(class)), int64(uint32(object))}, &found) //nolint:gosec // the table shows them as unsigned numbers
	return found, err
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
		c.log.Warn("notification connection lost; polling for changes by other servers every second until it is restored", "error", err)
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
	conn, err := listenOn(ctx, c.config, c.id)
	if err != nil {
		return nil
	}
	return conn
}

// waitForNotices wakes the reader until the connection breaks or ctx ends, and then closes the connection. If
// nothing arrives, it checks the connection, because a dead connection looks like one without notices.
func (c *Cluster) waitForNotices(ctx context.Context, conn *pgx.Conn) error {
	defer closeConn(ctx, conn)
	for {
		if err := c.waitOnce(ctx, conn); err != nil {
			return err
		}
		c.wakeReader()
	}
}

// waitOnce returns when there is a notice, or when none has arrived within checkInterval and a check has shown that
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
