package audit

import (
	"context"
	"encoding/json"
	"time"
)

// The largest batch that a server writes and a sink must take.
const (
	MaxRecords   = 1000    // of a batch
	MaxBatch     = 8 << 20 // bytes of a batch, about
	MaxArguments = 4 << 20 // bytes of the arguments of one record
)

// Sink keeps audit records. It must be safe for concurrent use.
//
// The context's deadline is honoured: a call returns soon after it passes.
type Sink interface {
	// Write keeps records of a stream, in their order. A nil error says that all of them are durable: they
	// survive the end of the process at any moment. A sink that passes records on returns nil once the
	// receiver has taken all of them. After an error the first of them may have been kept, up to any one, and the
	// server writes the batch again: plugins.ErrUnavailable (wrapped or plain) when the records cannot be kept
	// now. Never return nil in the hope that they can be kept later.
	//
	// A stream is one run of one server. Its records come in ascending order of Sequence, one Write at a
	// time; writes of several streams come concurrently. A record whose Sequence is not higher than that
	// of the last kept record of its stream was kept already: it is skipped, without an error, also
	// after a restart if the sink is a Reader. Other sinks pass on Stream and Sequence, so that
	// the receiver can tell.
	//
	// An empty stream, and sequences that are 0 or do not ascend, are plugins.ErrInvalid; Serve checks
	// them. A batch has 0 to MaxRecords records.
	Write(ctx context.Context, stream string, records []Record) error
}

// Reader is the optional capability of a sink that can show what it has kept.
type Reader interface {
	Sink

	// Read returns the kept records of a stream whose Sequence is higher than after, in ascending order, as
	// they were written (times to the millisecond, Arguments the same JSON value): at most limit (1 to
	// MaxRecords) of them, at least one if there is one. Any field may hold any text. A record is there once
	// its Write has returned, in every process of the sink, and stays. A stream that is not known has no
	// records.
	Read(ctx context.Context, stream string, after uint64, limit int) ([]Record, error)
}

// Record says who did what, and how it ended. Stream and Sequence together are its id.
type Record struct {
	Sequence  uint64          `json:"sequence"` // at least 1
	Time      time.Time       `json:"time"`     // by the clock of the server
	Actor     string          `json:"actor"`    // user id; "" for a sender that is not known
	Address   string          `json:"address,omitempty"`
	Workspace string          `json:"workspace,omitempty"`
	Action    string          `json:"action"`           // such as tools.call, tools.call.ended or POST /v1/apps/install
	Target    string          `json:"target,omitempty"` // what it was done to
	Outcome   string          `json:"outcome"`          // ok, allowed, input_required, tool_error, rpc_error, cancelled, or an error code such as forbidden
	Reason    string          `json:"reason,omitempty"` // why it was refused or failed, for people
	RequestID string          `json:"requestId,omitempty"`
	TraceID   string          `json:"traceId,omitempty"`
	Duration  float64         `json:"durationMs,omitempty"` // milliseconds, of what has ended
	Arguments json.RawMessage `json:"arguments,omitempty"`  // of a tool call, one JSON value; only where configured
}

// Entry is a record with its stream: the form in which the built-in sinks write records as JSON.
type Entry struct {
	Stream string `json:"stream"`
	Record
}
