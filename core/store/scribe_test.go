package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

// together has the scribe of a file do all of these in one transaction, and returns their errors.
func together(t *testing.T, s *Store, writes ...func(tx *sql.Tx) error) []error {
	t.Helper()
	begun, goOn := make(chan struct{}), make(chan struct{})
	errs := make([]error, len(writes))
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = s.scribe.write(t.Context(), func(*sql.Tx) error {
			select {
			case <-begun: // again, by itself
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
			e := entry{do, make(chan error, 1)}
			waiting <- struct{}{}
			s.scribe.queue <- e
			errs[i] = <-e.answer
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

func TestAWriteThatFailsTakesNoOtherWithIt(t *testing.T) {
	s := open(t)
	failed := errors.New("no")
	errs := together(t, s, setting("a", "1"), func(tx *sql.Tx) error {
		return errors.Join(setting("b", "1")(tx), failed)
	}, setting("c", "1"), setting("a", "a second time"))
	if errs[1] == nil || errs[2] != nil || (errs[0] == nil) == (errs[3] == nil) {
		t.Errorf("%v", errs)
	}
	if n := count(t, s, `SELECT COUNT(*) FROM settings WHERE name IN ('a', 'b', 'c')`); n != 2 {
		t.Errorf("%d of them are kept", n)
	}
}

func TestATransactionThatBreaksIsDoneAgainOneByOne(t *testing.T) {
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
		t.Errorf("%d of three are kept", n)
	}
	if n := count(t, s, `SELECT COUNT(*) FROM settings WHERE name = 'b'`); n != 0 {
		t.Error("what broke is kept")
	}
}

func TestAWriteWhoseCallerLeftWhileItWaitedIsNotDone(t *testing.T) {
	s := open(t)
	begun, goOn, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		_ = s.scribe.write(t.Context(), func(*sql.Tx) error { close(begun); <-goOn; return nil })
	}()
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.scribe.write(ctx, setting("late", "1")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(goOn)
	<-over
	if n := count(t, s, `SELECT COUNT(*) FROM settings WHERE name = 'late'`); n != 0 {
		t.Error("it was done")
	}
}

// The statement of one is interrupted while others are in the same transaction.
func TestACallerThatLeavesInTheMiddleSpoilsNoOthersWrite(t *testing.T) {
	s := open(t)
	owner := core.Owner().User.ID
	var wg sync.WaitGroup
	for i := range 8 {
		ref := talk(t, s, fmt.Sprint(i))
		wg.Go(func() {
			for n := range 20 {
				grow(t, s, ref, []core.Message{said("user", fmt.Sprint("kept ", n))})
			}
			if got := history(t, s, ref); len(got) != 20 {
				t.Errorf("%d of 20 messages are kept", len(got))
			}
		})
		wg.Go(func() {
			for range 20 {
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				_, err := s.AppendMessages(ctx, core.ConversationRef{Workspace: core.DefaultWorkspaceID, Owner: owner, ID: ref.ID}, nil, core.Usage{Model: "m", InputTokens: 1})
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestAClosedStateSaysSo(t *testing.T) {
	s, err := Open(t.Context(), Options{Path: t.TempDir() + "/ropewalk.db"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.scribe.write(t.Context(), setting("a", "b")); err == nil {
		t.Error("a write after the end")
	}
}
