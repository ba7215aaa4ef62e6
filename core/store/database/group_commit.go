package database

import (
	"context"
	"database/sql"
	"errors"
)

// maxGroup is how many writes share a transaction of the file: those that queue behind them wait for
// all of them.
const maxGroup = 64

// groupCommit writes to the file for many callers at a time. Writes that arrive while it writes share
// the next transaction, and so its one wait for the disk. Each of them is still all or nothing, and an
// error of one does not affect the others. PostgreSQL does the like by itself.
//
// BenchmarkAppend in core/store measures it.
type groupCommit struct {
	db      *sql.DB
	queue   chan groupedWrite
	closing chan struct{}
	closed  chan struct{}
}

// groupedWrite is one write. do may be called twice.
type groupedWrite struct {
	do     func(tx *sql.Tx) error
	result chan error
}

func newGroupCommit(db *sql.DB) *groupCommit {
	g := &groupCommit{db: db, queue: make(chan groupedWrite), closing: make(chan struct{}), closed: make(chan struct{})}
	go g.serve()
	return g
}

func (g *groupCommit) close() error {
	close(g.closing)
	<-g.closed
	return nil
}

// write returns when what do does is durable, or not done at all. A write that is still queued ends
// with ctx; one that has begun ends as do does.
func (g *groupCommit) write(ctx context.Context, do func(tx *sql.Tx) error) error {
	w := groupedWrite{do, make(chan error, 1)}
	select {
	case g.queue <- w:
		return <-w.result
	case <-ctx.Done():
		return ctx.Err()
	case <-g.closed:
		return errors.New("the state is closed")
	}
}

func (g *groupCommit) serve() {
	defer close(g.closed)
	for {
		select {
		case w := <-g.queue:
			g.commitGroup(context.Background(), w)
		case <-g.closing:
			return
		}
	}
}

// commitGroup commits the first write and those that are queued by then.
func (g *groupCommit) commitGroup(ctx context.Context, first groupedWrite) {
	tx, err := g.db.BeginTx(ctx, nil)
	if err != nil {
		first.result <- err
		return
	}
	var done []groupedWrite
	for w, more := first, true; more; w, more = g.next(len(done)) {
		err, broken := inSavepoint(ctx, tx, w.do)
		if broken {
			_ = Rollback(tx)
			w.result <- err
			g.commitEach(ctx, done)
			return
		}
		if err != nil {
			w.result <- err
			continue
		}
		done = append(done, w)
	}
	err = tx.Commit()
	for _, w := range done {
		w.result <- err
	}
}

// next returns a queued write, unless the group is full.
func (g *groupCommit) next(done int) (w groupedWrite, more bool) {
	if done >= maxGroup {
		return w, false
	}
	select {
	case w = <-g.queue:
		return w, true
	default:
		return w, false
	}
}

// inSavepoint does one of the writes of a transaction, and undoes it when it fails. Some errors, such as
// that of a statement whose context ended, end the whole transaction: it is broken then.
func inSavepoint(ctx context.Context, tx *sql.Tx, do func(tx *sql.Tx) error) (err error, broken bool) {
	if _, err := tx.ExecContext(ctx, `SAVEPOINT entry`); err != nil {
		return err, true
	}
	if err := do(tx); err != nil {
		_, undone := tx.ExecContext(ctx, `ROLLBACK TO entry`)
		_, released := tx.ExecContext(ctx, `RELEASE entry`)
		return err, undone != nil || released != nil
	}
	_, err = tx.ExecContext(ctx, `RELEASE entry`)
	return err, err != nil
}

// commitEach does the writes of a transaction that broke, each in a transaction of its own.
func (g *groupCommit) commitEach(ctx context.Context, all []groupedWrite) {
	for _, w := range all {
		w.result <- InTransaction(ctx, g.db, w.do)
	}
}
