package database

import (
	"context"
	"database/sql"
	"errors"
)

// maxGroup is how many writes can share a transaction. Writes that queue behind a group wait for all
// of it.
const maxGroup = 64

// groupCommit writes to the file for many callers. Writes that arrive during a transaction share the next one, which
// waits for the disk only once. Each write is still all or nothing, and an error in one does not affect the others.
// PostgreSQL does something similar on its own.
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

// write runs do and returns when its changes are durable, or were not made at all. If ctx ends, a queued write is
// dropped. A write that has started is completed.
func (g *groupCommit) write(ctx context.Context, do func(tx *sql.Tx) error) error {
	w := groupedWrite{do, make(chan error, 1)}
	select {
	case g.queue <- w:
		return <-w.result
	case <-ctx.Done():
		return ctx.Err()
	case <-g.closed:
		return errors.New("the database is closed")
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

// commitGroup commits the first write together with the writes that are already queued.
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

// inSavepoint runs one write of a transaction, and rolls it back if it fails. Some errors end the whole
// transaction, for example when the context of a statement ends: broken is then true.
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

// commitEach runs each write of a broken transaction in its own transaction.
func (g *groupCommit) commitEach(ctx context.Context, all []groupedWrite) {
	for _, w := range all {
		w.result <- InTransaction(ctx, g.db, w.do)
	}
}
