package database

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// together makes an SQLite database commit all writes as one group, and returns their errors.
func together(t *testing.T, s *Database, writes ...func(tx *sql.Tx) error) []error {
	t.Helper()
	begun, goOn := make(chan struct{}), make(chan struct{})
	errs := make([]error, len(writes))
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = s.group.write(t.Context(), func(*sql.Tx) error {
			select {
			case <-begun: // the second call, outside the group
			default:
				close(begun)
				<-goOn
			}
			return nil
		})
	})
	<-begun
	waiting := make(chan struct{}, len(writes))
	for i, do := range writes {
		wg.Go(func() {
			e := groupedWrite{do, make(chan error, 1)}
			waiting <- struct{}{}
			s.group.queue <- e
			errs[i] = <-e.result
		})
		<-waiting
	}
	close(goOn)
	wg.Wait()
	return errs
}

func setting(name, value string) func(tx *sql.Tx) error {
	return func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO settings (name, value) VALUES ($1, $2)`, name, value)
		return err
	}
}

func TestAFailedWriteDoesNotFailOthers(t *testing.T) {
	s := open(t)
	failed := errors.New("no")
	errs := together(t, s, setting("a", "1"), func(tx *sql.Tx) error {
		return errors.Join(setting("b", "1")(tx), failed)
	}, setting("c", "1"), setting("a", "a second time"))
	if errs[1] == nil || errs[2] != nil || (errs[0] == nil) == (errs[3] == nil) {
		t.Errorf("%v", errs)
	}
	if n := count(t, s, `SELECT COUNT(*) FROM settings WHERE name IN ('a', 'b', 'c')`); n != 2 {
		t.Errorf("%d of them were stored", n)
	}
}

func TestAFailedTransactionIsRetriedWriteByWrite(t *testing.T) {
	s := open(t)
	errs := together(t, s, setting("a", "1"), func(tx *sql.Tx) error {
		if err := setting("b", "1")(tx); err != nil {
			return err
		}
		_, err := tx.Exec(`ROLLBACK`) // as SQLite does when a statement is interrupted, or the disk is full
		return errors.Join(err, errors.New("broken"))
	}, setting("c", "1"), setting("d", "1"))
	if errs[0] != nil || errs[1] == nil || errs[2] != nil || errs[3] != nil {
		t.Errorf("%v", errs)
	}
	if n := count(t, s, `SELECT COUNT(*) FROM settings WHERE name IN ('a', 'c', 'd')`); n != 3 {
		t.Errorf("%d of three were stored", n)
	}
	if n := count(t, s, `SELECT COUNT(*) FROM settings WHERE name = 'b'`); n != 0 {
		t.Error("a failed write was stored")
	}
}

func TestAWriteIsDroppedIfItsCallerLeavesWhileItWaits(t *testing.T) {
	s := open(t)
	begun, goOn, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		_ = s.group.write(t.Context(), func(*sql.Tx) error { close(begun); <-goOn; return nil })
	}()
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.group.write(ctx, setting("late", "1")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(goOn)
	<-over
	if n := count(t, s, `SELECT COUNT(*) FROM settings WHERE name = 'late'`); n != 0 {
		t.Error("it was done")
	}
}

func TestAWriteAfterCloseIsRefused(t *testing.T) {
	s := open(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.group.write(t.Context(), setting("a", "b")); err == nil {
		t.Error("a write was accepted after Close")
	}
}

func open(t *testing.T) *Database {
	t.Helper()
	db, err := OpenFile(t.Context(), filepath.Join(t.TempDir(), "ropewalk.db"), hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func count(t *testing.T, db *Database, query string) (n int) {
	t.Helper()
	if err := db.Get(t.Context(), "counting", query, nil, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
