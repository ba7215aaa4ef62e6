package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/audit"
	"github.com/ropewalk/ropewalk/plugins"
	contract "github.com/ropewalk/ropewalk/plugins/audit"
)

// keeper is a sink that can be made unavailable.
type keeper struct {
	mu    sync.Mutex
	err   error // returned by every write
	slow  time.Duration
	kept  []contract.Record
	last  uint64
	fault string // the first violation of the contract by the writer
	busy  bool
}

func (k *keeper) Write(ctx context.Context, _ string, records []contract.Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.busy {
		k.fault = "two concurrent writes"
	}
	k.busy = true
	k.mu.Unlock()
	if k.slow > 0 {
		select {
		case <-time.After(k.slow):
		case <-ctx.Done():
		}
	}
	k.mu.Lock()
	k.busy = false
	if k.err != nil {
		return k.err
	}
	if len(records) > contract.MaxRecords {
		k.fault = fmt.Sprintf("a batch of %d records", len(records))
	}
	for _, r := range records {
		if r.Sequence != k.last+1 {
			k.fault = fmt.Sprintf("%d came after %d", r.Sequence, k.last)
		}
		k.last = r.Sequence
		k.kept = append(k.kept, r)
	}
	return ctx.Err()
}

func (k *keeper) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = err
}

func (k *keeper) targets(t *testing.T) string {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fault != "" {
		t.Error(k.fault)
	}
	var all []string
	for _, r := range k.kept {
		all = append(all, r.Target)
	}
	return strings.Join(all, " ")
}

func stream(k contract.Sink, wait bool) *audit.Stream {
	return audit.NewStream(audit.StreamOptions{Name: "keeper", Sink: k, Wait: wait, Logger: hclog.NewNullLogger()})
}

func send(t *testing.T, s *audit.Stream, targets ...string) {
	t.Helper()
	for _, target := range targets {
		if err := s.Write(t.Context(), core.AuditRecord{Target: target}); err != nil {
			t.Error(err)
		}
	}
}

func TestRecordsWaitForAnUnavailableSinkAndArriveOnceInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{err: plugins.Unavailable(errors.New("refused"))}
		s := stream(k, false)
		send(t, s, "a", "b")
		time.Sleep(time.Minute) //nolint:forbidigo // by the clock of the bubble
		if err := s.Down(); err == nil || !strings.Contains(err.Error(), "keeper does not accept records") {
			t.Errorf("while the sink is unavailable: %v", err)
		}
		send(t, s, "c")
		k.fail(nil)
		time.Sleep(time.Minute) //nolint:forbidigo // by the clock of the bubble
		if got := k.targets(t); got != "a b c" || s.Down() != nil {
			t.Errorf("kept %q, down: %v", got, s.Down())
		}
		for i := range 2500 {
			send(t, s, fmt.Sprint(i))
		}
		if err := s.Close(t.Context()); err != nil || len(strings.Fields(k.targets(t))) != 2503 {
			t.Errorf("at its end the sink has %d records: %v", len(strings.Fields(k.targets(t))), err)
		}
		if err := s.Write(t.Context(), core.AuditRecord{}); err == nil {
			t.Error("a closed stream should not accept records")
		}
	})
}

func TestAWriterThatNeedsAnAcknowledgementWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{slow: time.Second}
		s := stream(k, true)
		var writing sync.WaitGroup
		began := time.Now()
		for i := range 20 {
			writing.Go(func() { send(t, s, fmt.Sprint(i)) })
		}
		writing.Wait()
		if took := time.Since(began); took != 2*time.Second { // one record, then the other nineteen in one batch
			t.Errorf("20 writes at once took %s", took)
		}
		if got := len(strings.Fields(k.targets(t))); got != 20 {
			t.Errorf("%d records were kept when their writes returned", got)
		}
		k.fail(plugins.ErrUnavailable)
		if err := s.Write(t.Context(), core.AuditRecord{Target: "refused"}); !errors.Is(err, plugins.ErrUnavailable) {
			t.Errorf("while the sink is unavailable: %v", err)
		}
		began = time.Now()
		if err := s.Write(t.Context(), core.AuditRecord{Target: "too"}); !errors.Is(err, plugins.ErrUnavailable) || time.Since(began) > 0 {
			t.Errorf("once it is known to be down, after %s: %v", time.Since(began), err)
		}
		k.fail(nil)
		time.Sleep(time.Minute) //nolint:forbidigo // by the clock of the bubble
		send(t, s, "last")
		if err := s.Close(t.Context()); err != nil || !strings.HasSuffix(k.targets(t), "refused last") {
			t.Errorf("kept %q: %v", k.targets(t), err)
		}
	})
}

func TestAWriterThatNeedsAnAcknowledgementDoesNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{slow: time.Hour}
		s := stream(k, true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Write(ctx, core.AuditRecord{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after its caller left: %v", err)
		}
		began := time.Now()
		if err := s.Write(t.Context(), core.AuditRecord{}); err == nil || time.Since(began) > time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		_ = s.Close(t.Context())
	})
}

func TestANewSinkGetsTheRecordsThatTheOldOneDidNotAcknowledge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &keeper{}, &keeper{last: 1}
		s := stream(first, false)
		send(t, s, "a")
		synctest.Wait()
		first.fail(plugins.ErrUnavailable)
		send(t, s, "b", "c")
		synctest.Wait()
		s.Use(second)
		if err := s.Close(t.Context()); err != nil || first.targets(t) != "a" || second.targets(t) != "b c" {
			t.Errorf("the first kept %q, the second %q: %v", first.targets(t), second.targets(t), err)
		}
	})
}

func TestLostRecordsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stream(&keeper{err: plugins.ErrUnavailable}, false)
		for range 10_000 {
			send(t, s, "x")
		}
		if err := s.Write(t.Context(), core.AuditRecord{}); err == nil || !strings.Contains(err.Error(), "10000 records are waiting for the audit sink keeper, so this record is lost") {
			t.Errorf("the record after the last slot: %v", err)
		}
		if got := s.Status(); got != (audit.Status{Sink: "keeper", Waiting: 10_000, Lost: 1}) {
			t.Errorf("the stream is %+v", got)
		}
		if err := s.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "10000 audit records are lost: the sink keeper did not accept them") {
			t.Errorf("at the end: %v", err)
		}
	})
}

func TestABatchThatASinkRejectsDoesNotBlockLaterOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{err: plugins.ErrInvalid, last: 1}
		s := stream(k, false)
		send(t, s, "bad")
		synctest.Wait()
		if lost := s.Status().Lost; lost != 1 {
			t.Errorf("%d records are counted as lost, want 1", lost)
		}
		k.fail(nil)
		send(t, s, "good")
		if err := s.Close(t.Context()); err != nil || k.targets(t) != "good" {
			t.Errorf("kept %q: %v", k.targets(t), err)
		}
	})
}

func TestRecordsAreValidUTF8AndFitInABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{}
		s := stream(k, false)
		large, _ := json.Marshal(strings.Repeat("x", 5<<20))
		for _, r := range []core.AuditRecord{{Target: "a\xffb", Arguments: large}, {Target: "c", Arguments: json.RawMessage("\"\xff\"")}} {
			if err := s.Write(t.Context(), r); err != nil {
				t.Error(err)
			}
		}
		if err := s.Close(t.Context()); err != nil || k.targets(t) != "a\ufffdb c" {
			t.Errorf("kept %q: %v", k.targets(t), err)
		}
		if got := string(k.kept[0].Arguments) + string(k.kept[1].Arguments); got != fmt.Sprintf(`"left out: %d bytes""%s"`, len(large), "\ufffd") {
			t.Errorf("the arguments are %.100s", got)
		}
	})
}

func TestAFloodFromStrangersLeavesSpaceForTheRecordsOfUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{err: plugins.Unavailable(errors.New("refused"))}
		s := stream(k, false)
		lost := 0
		for range 20_000 {
			if err := s.Write(t.Context(), core.AuditRecord{Action: "POST /mcp", Outcome: "unauthenticated"}); err != nil {
				lost++
			}
		}
		if lost == 0 {
			t.Error("no record of the flood is lost")
		}
		for _, r := range []core.AuditRecord{
			{Actor: "usr_alice", Action: "POST /v1/apps/install", Outcome: "ok"}, {Action: "POST /v1/apps/install", Outcome: "begun"},
		} {
			if err := s.Write(t.Context(), r); err != nil {
				t.Errorf("%+v: %v", r, err)
			}
		}
		k.fail(nil)
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
