package cluster

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

const (
	pollInterval   = time.Second            // of notices, should the database not wake the server
	purgeInterval  = time.Minute            // of old notices
	retryInterval  = 500 * time.Millisecond // after the database refused something
	closeTimeout   = 2 * time.Second        // for events that are not yet written when the server stops
	checkInterval  = 3 * time.Second        // of a silent notification connection
	checkTimeout   = 3 * time.Second        // for its answer
	maxUnwritten   = 1024                   // notices that wait to be written
	maxWriteAtOnce = 200
)

// Cluster connects this server with the others on one PostgreSQL database. It has a connection of its
// own, on which the database wakes it when another server writes a notice; while that is broken, notices
// are polled every second.
type Cluster struct {
	config *pgx.ConnConfig
	db     *database.Database
	log    hclog.Logger
	id     string // of this server: the origin of its notices
	conn   *pgx.Conn
	outbox chan notice
	wake   chan struct{}
	last   int64 // the number of the latest notice that was read

	subscribers subscribers
	requests    requests
	health      health
}

// Connect makes the notification connection, and holds database.LockInUse with it: from then on nobody
// can restore a backup. Call Start or Disconnect next.
func Connect(ctx context.Context, c *pgx.ConnConfig, log hclog.Logger) (*Cluster, error) {
	conn, err := listenOn(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Cluster{
		config: c, log: log, id: rand.Text(), conn: conn, outbox: make(chan notice, maxUnwritten), wake: make(chan struct{}, 1),
	}, nil
}

// Disconnect closes the connection of a Cluster that was not started.
func (c *Cluster) Disconnect(ctx context.Context) { closeConn(ctx, c.conn) }

// Start joins the other servers; no notice that they write from now on is missed. stop leaves them, and
// returns when everything has ended. The schema must be up to date.
func (c *Cluster) Start(ctx context.Context, db *database.Database) (stop func() error, err error) {
	c.db = db
	if err := db.Get(ctx, `SELECT n FROM counters WHERE name = 'notices'`, nil, &c.last); err != nil {
		c.Disconnect(ctx)
		return nil, err
	}
	c.health.readDone(nil)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { c.listen(ctx, c.conn) })
	running.Go(func() { c.read(ctx) })
	running.Go(func() { c.write(ctx) })
	return func() error {
		cancel()
		running.Wait()
		return nil
	}, nil
}

// ServerID is the name of this server among those on the database.
func (c *Cluster) ServerID() string { return c.id }

// Subscribe has deliver called for each event that another server publishes, its Data as JSON, until
// the returned function is called; after that deliver is not called any more. deliver must not wait.
func (c *Cluster) Subscribe(deliver func(core.Event)) (stop func()) {
	return c.subscribers.addEvents(deliver)
}

// Changes returns what other servers change, until ctx ends: the channel is closed then. A slow reader
// loses nothing, but gets once what changed many times.
func (c *Cluster) Changes(ctx context.Context) <-chan core.Change {
	out := make(chan core.Change)
	q := newChangeQueue()
	stop := c.subscribers.addChanges(q)
	go func() {
		defer stop()
		q.deliver(ctx, out)
	}()
	return out
}

// Publish queues an event for the other servers, without waiting.
func (c *Cluster) Publish(e core.Event) error {
	n, err := eventNotice(e)
	switch {
	case err != nil:
		return err
	case len(n.payload) > maxEvent:
		return errors.New("its data is larger than 1 MiB")
	case !c.post(n):
		return errors.New("too many wait to be written")
	}
	return nil
}

// Notify writes a change for the other servers, who learn of it when the transaction commits. It must be
// the last statement of the transaction: until the commit no other server can write a notice.
func (c *Cluster) Notify(ctx context.Context, tx *sql.Tx, change core.Change) error {
	return writeNotices(ctx, tx, c.id, []notice{{change: change}})
}

// post queues a notice, without waiting; false when too many wait already.
func (c *Cluster) post(n notice) bool {
	select {
	case c.outbox <- n:
		return true
	default:
		return false
	}
}

// sleep waits; false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
