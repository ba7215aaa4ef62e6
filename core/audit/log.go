package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// Sink is where records go. It is safe for concurrent use.
type Sink interface {
	Write(ctx context.Context, r core.AuditRecord) error
	Close(ctx context.Context) error
}

// Log passes records to sinks. A nil *Log records nothing.
type Log struct {
	sinks      atomic.Pointer[[]Sink]
	log        hclog.Logger
	failClosed bool
	arguments  bool
	fileLost   atomic.Uint64         // records that could not be written to the file
	fileDown   atomic.Pointer[error] // why the last record could not be written to the file; nil if it was
}

// Options configure a Log.
type Options struct {
	Sinks      []Sink
	FailClosed bool // Record returns an error if a sink did not accept a record
	Arguments  bool // record the arguments of tool calls
	Logger     hclog.Logger
}

// New returns a Log, or nil if there are no sinks.
func New(o Options) *Log {
	if len(o.Sinks) == 0 {
		return nil
	}
	l := &Log{failClosed: o.FailClosed, arguments: o.Arguments, log: o.Logger}
	l.Use(o.Sinks)
	return l
}

// Use replaces the sinks. The caller remains responsible for closing the old ones.
func (l *Log) Use(sinks []Sink) { l.sinks.Store(&sinks) }

// all returns the sinks. A nil Log has none.
func (l *Log) all() []Sink {
	if l == nil {
		return nil
	}
	return *l.sinks.Load()
}

// Ready returns an error if records cannot be written.
func (l *Log) Ready() error {
	var errs []error
	for _, s := range l.all() {
		if stream, ok := s.(*Stream); ok {
			errs = append(errs, stream.Down())
		} else if down := l.fileDown.Load(); down != nil {
			errs = append(errs, fmt.Errorf("the last record could not be written to audit.file: %w", *down))
		}
	}
	return errors.Join(errs...)
}

// Status returns the state of each sink.
func (l *Log) Status() []Status {
	var all []Status
	for _, s := range l.all() {
		if stream, ok := s.(*Stream); ok {
			all = append(all, stream.Status())
		} else {
			all = append(all, Status{Sink: "file", Lost: l.fileLost.Load()})
		}
	}
	return all
}

// maxTarget is how many bytes of a target are recorded. Apps list no longer names or URIs, but refused requests are
// recorded too, and they can contain any name.
const maxTarget = 4 << 10

// Record passes a record to every sink. The error is core.CodeUnavailable if the log fails closed and a sink
// did not accept the record.
func (l *Log) Record(ctx context.Context, r core.AuditRecord) error {
	if l == nil {
		return nil
	}
	if r.Time.IsZero() {
		r.Time = time.Now().UTC()
	}
	if r.TraceID == "" {
		r.TraceID = tracing.TraceID(ctx)
	}
	if r.RequestID == "" {
		origin := core.OriginOf(ctx)
		r.RequestID, r.Address = origin.RequestID, cmp.Or(r.Address, origin.Address)
	}
	if !l.arguments {
		r.Arguments = nil
	}
	if len(r.Target) > maxTarget {
		r.Target = strings.ToValidUTF8(r.Target[:maxTarget], "")
	}
	var errs []error
	for _, s := range l.all() {
		err := s.Write(ctx, r)
		if _, counts := s.(*Stream); !counts {
			l.fileDown.Store(nil)
			if err != nil {
				l.fileLost.Add(1)
				l.fileDown.Store(&err)
			}
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if err == nil {
		return nil
	}
	l.log.Error("could not write an audit record", "action", r.Action, "error", err)
	if l.failClosed {
		return core.Errorf(core.CodeUnavailable, "the audit log cannot be written")
	}
	return nil
}

// Reader is a sink whose records can be read back.
type Reader interface {
	Records(ctx context.Context, q core.AuditQuery) (core.AuditPage, error)
}

// Records returns records from the first sink that can be read. Errors are core.Errors: core.CodeNotConfigured if no
// sink can be read, core.CodeBadRequest for an invalid cursor.
func (l *Log) Records(ctx context.Context, q core.AuditQuery) (core.AuditPage, error) {
	for _, s := range l.all() {
		if r, ok := s.(Reader); ok {
			return r.Records(ctx, q)
		}
	}
	return core.AuditPage{}, core.Errorf(core.CodeNotConfigured, "no audit file is configured; set audit.file to record actions and to read the records here")
}

// Close writes the remaining records.
func (l *Log) Close(ctx context.Context) error {
	var errs []error
	for _, s := range l.all() {
		errs = append(errs, s.Close(ctx))
	}
	return errors.Join(errs...)
}
