package store

import (
	"context"
	"database/sql"
	"errors"
)

// mostTogether is how many writes share a transaction of the file: what waits behind them waits for
// all of them.
const mostTogether = 64

// scribe writes to the file for many at a time. Those who come while it writes share the next
// transaction, and so its one wait for the disk; each still has its own, all or nothing, and an error
// of one does not touch the others. PostgreSQL does the like by itself.
type scribe struct {
	db     *sql.DB
	queue  chan entry
	ending chan struct{}
	ended  chan struct{}
}

// entry is one write. do may be called twice.
type entry struct {
	do     func(tx *sql.Tx) error
	answer chan error
}

func newScribe(db *sql.DB) *scribe {
	s := &scribe{db: db, queue: make(chan entry), ending: make(chan struct{}), ended: make(chan struct{})}
	go s.run()
	return s
}

func (s *scribe) close() error {
	close(s.ending)
	<-s.ended
	return nil
}

// write returns when what do does is durable, or not done at all. A write that waits for its turn
// ends with ctx; one that has begun ends as do does.
func (s *scribe) write(ctx context.Context, do func(tx *sql.Tx) error) error {
	e := entry{do, make(chan error, 1)}
	select {
	case s.queue <- e:
		return <-e.answer
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ended:
		return errors.New("the state is closed")
	}
}

func (s *scribe) run() {
	defer close(s.ended)
	for {
		select {
		case e := <-s.queue:
			s.together(context.Background(), e)
		case <-s.ending:
			return
		}
	}
}

// together writes the first entry and those that have come by then.
func (s *scribe) together(ctx context.Context, first entry) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		first.answer <- err
		return
	}
	var done []entry
	for e, more := first, true; more; e, more = s.next(len(done)) {
		err, broken := apart(ctx, tx, e.do)
		if broken {
			_ = rollback(tx)
			e.answer <- err
			s.again(ctx, done)
			return
		}
		if err != nil {
			e.answer <- err
			continue
		}
		done = append(done, e)
	}
	err = tx.Commit()
	for _, e := range done {
		e.answer <- err
	}
}

// next is an entry that waits, unless there are enough.
func (s *scribe) next(done int) (e entry, more bool) {
	if done >= mostTogether {
		return e, false
	}
	select {
	case e = <-s.queue:
		return e, true
	default:
		return e, false
	}
}

// apart does one of the writes of a transaction, and undoes it when it fails. Some errors, such as
// that of a statement whose context ended, take the whole transaction with them: it is broken then.
func apart(ctx context.Context, tx *sql.Tx, do func(tx *sql.Tx) error) (err error, broken bool) {
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

// again does the writes of a transaction that broke, each by itself.
func (s *scribe) again(ctx context.Context, all []entry) {
	for _, e := range all {
		e.answer <- inTransaction(ctx, s.db, e.do)
	}
}
