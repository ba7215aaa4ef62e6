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
	pollInterval   = time.Second            // how often to look for notices, in case the database does not wake the server
	purgeInterval  = time.Minute            // how often to delete old notices
	retryInterval  = 500 * time.Millisecond // after a database error
	closeTimeout   = 2 * time.Second        // how long a server that is stopping tries to write its remaining events
	checkInterval  = 3 * time.Second        // how long a notification connection may be silent before it is checked
	checkTimeout   = 3 * time.Second        // how long to wait for the response to a check
	maxUnwritten   = 1024                   // notices waiting to be written
	maxWriteAtOnce = 200
)

// Cluster connects this server with the other servers that use the same PostgreSQL database. It has its own
// connection, on which the database wakes it when another server writes a notice. While that connection is
// broken, the server polls for notices every second.
type Cluster struct {
	config *pgx.ConnConfig
	db     *database.Database
	log    hclog.Logger
	id     string // this server's ID, the origin of its notices
	conn   *pgx.Conn
	outbox chan notice
	wake   chan struct{}
	last   int64 // the number of the latest notice that was read

	subscribers subscribers
	requests    requests
	health      health
}

// Connect opens the notification connection, which holds database.LockInUse, so that nobody
// can restore a backup from then on. Call Start or Disconnect next.
func Connect(ctx context.Context, c *pgx.ConnConfig, log hclog.Logger) (*Cluster, error) {
	id := rand.Text()
	conn, err := listenOn(ctx, c, id)
	if err != nil {
		return nil, err
	}
	return &Cluster{
		config: c, log: log, id: id, conn: conn, outbox: make(chan notice, maxUnwritten), wake: make(chan struct{}, 1),
	}, nil
}

// Disconnect closes the connection of a Cluster that has not been started.
func (c *Cluster) Disconnect(ctx context.Context) { closeConn(ctx, c.conn) }

// Start joins the cluster. From then on, no notice from another server is missed. stop leaves the cluster, and
// returns when everything has ended. The schema must be up to date.
func (c *Cluster) Start(ctx context.Context, db *database.Database) (stop func() error, err error) {
	c.db = db
	if err := db.Get(ctx, "reading the number of notices", `SELECT n FROM counters WHERE name = 'notices'`, nil, &c.last); err != nil {
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

// ServerID returns the id of this server, which is unique among the servers on the database.
func (c *Cluster) ServerID() string { return c.id }

// Subscribe calls deliver for each event that another server publishes, with its Data as JSON. After stop
// has returned, deliver is no longer called. deliver must not block.
func (c *Cluster) Subscribe(deliver func(core.Event)) (stop func()) {
	return c.subscribers.addEvents(deliver)
}

// Changes returns a channel with the changes that other servers make. It is closed when ctx ends. A slow reader
// does not miss changes, but repeated changes to the same thing are delivered once.
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

// Publish queues an event for the other servers, without blocking.
func (c *Cluster) Publish(e core.Event) error {
	n, err := eventNotice(e)
	switch {
	case err != nil:
		return err
	case len(n.payload) > maxEvent:
		return errors.New("its data is larger than 1 MiB")
	case !c.post(n):
		return errors.New("too many are waiting to be written")
	}
	return nil
}

// Notify writes a change for the other servers, which they receive when the transaction commits. It must be
// the last statement of the transaction, because no other server can write a notice until the commit.
func (c *Cluster) Notify(ctx context.Context, tx *sql.Tx, change core.Change) error {
	return writeNotices(ctx, tx, c.id, []notice{{change: change}})
}

// post queues a notice, without blocking. It returns false if the queue is full.
func (c *Cluster) post(n notice) bool {
	select {
	case c.outbox <- n:
		return true
	default:
		return false
	}
}

// sleep waits for d. It returns false if ctx ends first.
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
