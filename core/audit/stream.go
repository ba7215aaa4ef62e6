package audit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins"
	contract "github.com/ropewalk/ropewalk/plugins/audit"
)

const (
	maxWaiting  = 10_000           // records of one stream that are waiting for its sink; more are rejected
	maxBytes    = 64 << 20         // estimated total size of those records
	answerWait  = 15 * time.Second // how long a caller that needs an acknowledgement waits for the sink
	firstPause  = 50 * time.Millisecond
	longestWait = 5 * time.Second // between two attempts, and for the last records when a stream closes
)

// Stream is a Sink that passes records to a plugin: in order, numbered, in batches, repeating each batch until
// the plugin has acknowledged it. Records wait in memory; those still waiting when the server exits are lost.
type Stream struct {
	name string
	id   string
	wait bool // Write returns only when the plugin has acknowledged the record
	log  hclog.Logger

	mu       sync.Mutex
	sink     contract.Sink
	waiting  []entry // the unacknowledged records, in order
	bytes    int
	sequence uint64
	lost     uint64
	down     error // from the last attempt; nil if it succeeded
	closed   bool
	changed  chan struct{} // closed when waiting, sink or closed changes

	stop  context.CancelFunc
	ended chan struct{}
}

// entry is a record that is waiting to be acknowledged.
type entry struct {
	record contract.Record
	size   int
	done   chan error // receives the result of the first attempt; may be nil
}

// StreamOptions configure a Stream.
type StreamOptions struct {
	Name   string // the sink's name, in errors and the log
	Sink   contract.Sink
	Wait   bool // Write returns only when the sink has acknowledged the record, and returns the sink's error
	Logger hclog.Logger
}

// NewStream starts a stream.
func NewStream(o StreamOptions) *Stream {
	s := &Stream{name: o.Name, id: rand.Text(), wait: o.Wait, log: o.Logger, sink: o.Sink, changed: make(chan struct{}), ended: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.run(ctx)
	return s
}

// Use replaces the sink. Records that the old one has not acknowledged go to the new one.
func (s *Stream) Use(sink contract.Sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sink = sink
	s.notify()
}

// Down returns why the sink does not accept records, or nil if it does.
func (s *Stream) Down() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down == nil {
		return nil
	}
	return fmt.Errorf("the audit sink %s does not accept records: %w", s.name, s.down)
}

// Status is the state of a sink.
type Status struct {
	Sink    string // its name; "file" for audit.file
	Waiting int    // records that it has not acknowledged yet
	Lost    uint64 // records that it will never get
}

// Status returns the state of the sink.
func (s *Stream) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{Sink: s.name, Waiting: len(s.waiting), Lost: s.lost}
}

// Write implements Sink.
func (s *Stream) Write(ctx context.Context, r core.AuditRecord) error {
	done, err := s.enqueue(r)
	if err != nil {
		s.mu.Lock()
		s.lost++
		s.mu.Unlock()
		return err
	}
	if done == nil {
		return nil
	}
	patience := time.NewTimer(answerWait)
	defer patience.Stop()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the audit sink %s: %w", s.name, ctx.Err())
	case <-patience.C:
		return fmt.Errorf("the audit sink %s did not respond within %s", s.name, answerWait)
	}
}

func (s *Stream) enqueue(r core.AuditRecord) (chan error, error) {
	e := entry{record: recordOf(r)}
	e.size = sizeOf(&e.record)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, fmt.Errorf("the audit sink %s is closed", s.name)
	case s.wait && s.down != nil:
		return nil, fmt.Errorf("the audit sink %s does not accept records: %w", s.name, s.down)
	case isAnonymous(&r) && (len(s.waiting) >= maxWaiting/2 || s.bytes+e.size > maxBytes/2):
		return nil, fmt.Errorf("%d records are waiting for the audit sink %s, so this record, which is from an unknown sender, is lost", len(s.waiting), s.name)
	case len(s.waiting) >= maxWaiting || s.bytes+e.size > maxBytes:
		return nil, fmt.Errorf("%d records are waiting for the audit sink %s, so this record is lost", len(s.waiting), s.name)
	}
	if s.wait {
		e.done = make(chan error, 1)
	}
	s.sequence++
	e.record.Sequence = s.sequence
	s.waiting, s.bytes = append(s.waiting, e), s.bytes+e.size
	s.notify()
	return e.done, nil
}

// isAnonymous reports whether a record is about a request that anyone could have sent. Such records use only half of
// the space, so that a flood of them leaves room for other records. The first record of a change has no actor either,
// but is not anonymous unless it is a login.
func isAnonymous(r *core.AuditRecord) bool {
	return r.Actor == "" && r.Outcome != "" && (r.Outcome != "begun" || strings.HasPrefix(r.Action, "POST /v1/auth/"))
}

// notify wakes the writer. The caller holds mu.
func (s *Stream) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// run writes batches until the stream is closed and everything is acknowledged, or ctx ends.
func (s *Stream) run(ctx context.Context) {
	defer close(s.ended)
	pause := firstPause
	for {
		batch, sink, changed, closed := s.next()
		switch {
		case len(batch) == 0 && closed:
			return
		case len(batch) == 0:
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
			continue
		}
		err := sink.Write(ctx, s.id, batch)
		s.settle(len(batch), err)
		if err == nil || errors.Is(err, plugins.ErrInvalid) {
			pause = firstPause
			continue
		}
		again := time.NewTimer(pause)
		pause = min(2*pause, longestWait)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return
		}
	}
}

// next returns the first waiting records, as many as fit in a batch.
func (s *Stream) next() (batch []contract.Record, sink contract.Sink, changed <-chan struct{}, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := 0
	for _, e := range s.waiting {
		if size += e.size; len(batch) == contract.MaxRecords || size > contract.MaxBatch && len(batch) > 0 {
			break
		}
		batch = append(batch, e.record)
	}
	return batch, s.sink, s.changed, s.closed
}

// settle handles the result for a batch of the first n records.
func (s *Stream) settle(n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	again := err != nil && !errors.Is(err, plugins.ErrInvalid)
	answered := n
	switch before := s.down; {
	case again:
		if answered = len(s.waiting); before == nil { // report the failure to every waiting caller
			s.log.Error("the audit sink does not accept records; they are kept until it does", "sink", s.name, "error", err)
		}
	case err != nil:
		s.lost += uint64(n)
		s.log.Error("audit records were lost: the sink rejected them as invalid", "sink", s.name, "records", n, "error", err)
	case before != nil:
		s.log.Info("the audit sink accepts records again", "sink", s.name, "waiting", len(s.waiting))
	}
	for i := range s.waiting[:answered] {
		if e := &s.waiting[i]; e.done != nil {
			e.done <- err
			e.done = nil
		}
	}
	if s.down = nil; again {
		s.down = err
		return
	}
	for _, e := range s.waiting[:n] {
		s.bytes -= e.size
	}
	clear(s.waiting[:n])
	s.waiting = s.waiting[n:]
}

// Close implements Sink. It writes the waiting records as long as the sink accepts them, until ctx ends.
func (s *Stream) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.notify()
	s.mu.Unlock()
	defer s.stop()
	patience := time.NewTimer(longestWait)
	defer patience.Stop()
	select {
	case <-s.ended:
	case <-ctx.Done():
	case <-patience.C:
	}
	s.stop()
	<-s.ended
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.waiting); n > 0 {
		s.waiting = nil
		return fmt.Errorf("%d audit records are lost: the sink %s did not accept them: %w", n, s.name, s.down)
	}
	return nil
}
