package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5"
)

const (
	lookEvery    = time.Second            // for notices, should the database not wake us
	tidyEvery    = time.Minute            // of old notices
	retryEvery   = 500 * time.Millisecond // what the database refused
	lastWords    = 2 * time.Second        // for events that are not yet written when the store closes
	maxUnwritten = 1024                   // events that wait to be written
	maxTogether  = 200                    // events that are written at once
)

// line is what connects the servers on one PostgreSQL database. It has a connection of its own, which
// is woken when another server writes a notice; without it the notices are looked for every second.
type line struct {
	config *pgx.ConnConfig
	db     *sql.DB
	log    hclog.Logger
	origin string // of this server's notices
	outbox chan notice
	wake   chan struct{}
	last   int64 // the number of the latest notice that was read
	ears   ears

	errands errands
}

func newLine(c *pgx.ConnConfig, db *sql.DB, log hclog.Logger) *line {
	return &line{
		config: c, db: db, log: log, origin: rand.Text(), outbox: make(chan notice, maxUnwritten), wake: make(chan struct{}, 1),
	}
}

// start joins the other servers; nothing that they tell from now on is missed. stop leaves them, and
// returns when everything has ended.
func (l *line) start(ctx context.Context, conn *pgx.Conn) (stop func() error, err error) {
	if err := l.db.QueryRowContext(ctx, `SELECT n FROM counters WHERE name = 'notices'`).Scan(&l.last); err != nil {
		hangUp(ctx, conn)
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { l.listen(ctx, conn) })
	running.Go(func() { l.read(ctx) })
	running.Go(func() { l.write(ctx) })
	return func() error {
		cancel()
		running.Wait()
		return nil
	}, nil
}

// attend makes the line's own connection.
func attend(ctx context.Context, c *pgx.ConnConfig) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return nil, err
	}
	free, err := holds(ctx, conn, `SELECT pg_advisory_lock_shared($1)`)
	if err == nil && !free {
		err = errors.New("a backup is being restored: start the server when that has ended")
	}
	if err == nil {
		_, err = conn.Exec(ctx, `LISTEN ropewalk`)
	}
	if err != nil {
		hangUp(ctx, conn)
		return nil, err
	}
	return conn, nil
}

func hangUp(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	_ = conn.Close(ctx)
}

// listen is woken by the others until ctx ends. When the connection breaks it makes another.
func (l *line) listen(ctx context.Context, conn *pgx.Conn) {
	for {
		err := l.beWoken(ctx, conn)
		if ctx.Err() != nil {
			return
		}
		l.log.Warn("The connection that tells of other servers' changes broke; they are looked for every second until it is back", "error", err)
		for conn = nil; conn == nil; {
			if !pause(ctx, retryEvery) {
				return
			}
			conn, _ = attend(ctx, l.config)
		}
		l.log.Info("The connection that tells of other servers' changes is back.")
	}
}

// beWoken is woken through one connection until that breaks or ctx ends, and closes it.
func (l *line) beWoken(ctx context.Context, conn *pgx.Conn) error {
	defer hangUp(ctx, conn)
	for {
		_, err := conn.WaitForNotification(ctx)
		l.poke()
		if err != nil {
			return err
		}
	}
}

func (l *line) poke() {
	select {
	case l.wake <- struct{}{}:
	default: // it is awake
	}
}

// read hands on what the others tell, until ctx ends.
func (l *line) read(ctx context.Context) {
	look, tidy := time.NewTicker(lookEvery), time.NewTicker(tidyEvery)
	defer look.Stop()
	defer tidy.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		case <-l.wake:
		case <-tidy.C:
			_, _ = l.db.ExecContext(ctx, `DELETE FROM notices
				WHERE made_at < (EXTRACT(EPOCH FROM clock_timestamp() - INTERVAL '`+keepNotices+`') * 1000)::BIGINT`)
			continue
		}
		l.readAll(ctx)
	}
}

func (l *line) readAll(ctx context.Context) {
	for {
		found, next, missed, err := readNotices(ctx, l.db, l.last)
		if err != nil {
			l.log.Debug("Other servers' changes could not be read; they are read later", "error", err)
			return
		}
		l.last = next
		if missed {
			l.log.Warn("Changes of other servers were missed: everything is looked at again.")
			l.ears.missed()
		}
		for _, one := range found {
			if one.origin != l.origin && !l.errands.letter(one, l.origin) {
				l.ears.tell(one)
			}
		}
		if len(found) == 0 {
			return
		}
	}
}

// write writes events for the others until ctx ends, and then those that wait already.
func (l *line) write(ctx context.Context) {
	var batch []notice
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case first := <-l.outbox:
			if batch = l.waiting([]notice{first}); l.deliver(ctx, batch) {
				batch = nil
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	for batch = l.waiting(batch); len(batch) > 0 && l.deliver(ctx, batch); {
		batch = l.waiting(nil)
	}
}

// waiting adds what waits in the outbox.
func (l *line) waiting(batch []notice) []notice {
	for len(batch) < maxTogether {
		select {
		case next := <-l.outbox:
			batch = append(batch, next)
			continue
		default:
		}
		break
	}
	return batch
}

// deliver writes a batch, again and again until it is written; false when ctx ends first.
func (l *line) deliver(ctx context.Context, batch []notice) bool {
	for warned := false; ; warned = true {
		err := inTransaction(ctx, l.db, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, `SET LOCAL synchronous_commit = off`); err != nil { // events are of the moment
				return err
			}
			return writeNotices(ctx, tx, l.origin, batch)
		})
		if err == nil {
			return true
		}
		if !warned && ctx.Err() == nil {
			l.log.Warn("Events could not be handed to the other servers; they wait", "events", len(batch), "error", err)
		}
		if !pause(ctx, retryEvery) {
			return false
		}
	}
}

// pause waits; false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
