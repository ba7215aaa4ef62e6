package audittest

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/host"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// Records returns kept records as audit.Reader's Read does.
type Records func(ctx context.Context, stream string, after uint64, limit int) ([]audit.Record, error)

// Subject is an audit sink to check, and what can be done to it. What is nil leaves checks out: they are
// skipped and say so.
type Subject struct {
	Sink audit.Sink

	// Records shows what was kept. It may look at the receiver of a sink that passes records on; nil for a
	// Sink that is an audit.Reader.
	Records Records

	// Open starts one more process of the sink on the same backend, as another server would.
	Open func(ctx context.Context) (*Process, error)

	// Exclusive says that the sink has the capability "exclusive": only one process has the backend at a time,
	// and Open is not used.
	Exclusive bool

	// Restart ends the process of Sink with kill -9; the calls that follow are made on the next one.
	Restart func(ctx context.Context) error

	// Backend takes the backend of Sink away and brings it back.
	Backend kit.Backend
}

// Process is one more process of a sink.
type Process struct {
	Sink  audit.Sink
	Kill  func() // ends it at once, without a chance to finish anything; nil when that is not possible
	Close func() // ends it as a server does
}

// Connected is the sink at the other end of conn, with the capabilities that the plugin declares.
func Connected(ctx context.Context, conn grpc.ClientConnInterface) (Subject, error) {
	about, err := host.NewControl(conn).Info(ctx)
	if err != nil {
		return Subject{}, err
	}
	sink := audit.Client(conn)
	if !slices.Contains(about.Capabilities, plugins.CapabilityRead) {
		sink = struct{ audit.Sink }{sink} // without Read, which every client has
	}
	return Subject{Sink: sink, Exclusive: slices.Contains(about.Capabilities, plugins.CapabilityExclusive)}, nil
}

// reads reports whether the sink itself shows what it has kept.
func (s Subject) reads() bool {
	_, ok := s.Sink.(audit.Reader)
	return ok
}

// records returns how to see what was kept, or why that is not possible.
func (s Subject) records() (Records, error) {
	if s.Records != nil {
		return s.Records, nil
	}
	return recordsOf(s.Sink)
}

func recordsOf(sink audit.Sink) (Records, error) {
	if reader, ok := sink.(audit.Reader); ok {
		return reader.Read, nil
	}
	return nil, kit.Skip(`the sink has not the capability "read", and nothing was given to look at its receiver with`)
}

// kept returns everything that was kept of a stream.
func (s Subject) kept(ctx context.Context, stream string) ([]audit.Record, error) {
	read, err := s.records()
	if err != nil {
		return nil, err
	}
	return all(ctx, read, stream)
}

// all reads a stream to its end.
func all(ctx context.Context, read Records, stream string) (kept []audit.Record, err error) {
	after := uint64(0)
	for {
		page, err := read(ctx, stream, after, audit.MaxRecords)
		if err != nil {
			return nil, kit.Failf("Read of a stream that was written: %w", err)
		}
		if len(page) == 0 {
			return kept, nil
		}
		for _, r := range page {
			if r.Sequence <= after {
				return nil, kit.Failf("Read must return records in ascending order, each once; after %d came %d", after, r.Sequence)
			}
			after = r.Sequence
		}
		kept = append(kept, page...)
	}
}

// open starts one more process, whose records can be looked at.
func (s Subject) open(ctx context.Context) (*Process, Records, error) {
	if s.Exclusive {
		return nil, nil, kit.Skip(`the sink has the capability "exclusive": two processes never share its backend`)
	}
	if s.Open == nil {
		return nil, nil, kit.Skip("nothing was given to start a second process with")
	}
	if _, err := s.records(); err != nil {
		return nil, nil, err
	}
	p, err := s.Open(ctx)
	if err != nil {
		return nil, nil, kit.Failf("start one more process on the same backend: %w", err)
	}
	if s.Records != nil {
		return p, s.Records, nil
	}
	read, err := recordsOf(p.Sink)
	return p, read, err
}
