package audit

import (
	"context"
	"encoding/json"
	"time"
)

// The largest batch that a server writes and that a sink must accept.
const (
	MaxRecords   = 1000    // records in a batch
	MaxBatch     = 8 << 20 // approximate size of a batch in bytes
	MaxArguments = 4 << 20 // size of one record's arguments in bytes
)

// Sink keeps audit records. It must be safe for concurrent use. A call must return soon after its context's deadline.
type Sink interface {
	// Write keeps a stream's records, in order. A nil error means that all of them are durable: they survive even if
	// the process exits at any moment. A sink that forwards records returns nil once the receiver has accepted all of
	// them. After an error, any number of records from the start of the batch may have been kept, and the server writes
	// the batch again. The error is plugins.ErrUnavailable (wrapped or plain) if the records cannot be kept now. Never
	// return nil in the hope that they can be kept later.
	//
	// A stream is one run of one server. Its records come in ascending order of Sequence, one Write at a time;
	// different streams are written concurrently. A record has already been kept if its Sequence is not higher than
	// that of the last kept record of its stream. Such a record is skipped without an error, even after a restart if
	// the sink is a Reader. Other sinks forward Stream and Sequence, so that the receiver can detect duplicates.
	//
	// An empty stream, and sequences that are 0 or do not ascend, are plugins.ErrInvalid; Serve checks them. A batch
	// has 0 to MaxRecords records.
	Write(ctx context.Context, stream string, records []Record) error
}

// Reader is the optional capability of a sink that can read back its records.
type Reader interface {
	Sink

	// Read returns the kept records of a stream whose Sequence is higher than after, in ascending order, as
	// they were written (times to the millisecond, Arguments as the same JSON value). It returns at most limit
	// (1 to MaxRecords) of them, and at least one if there is one. Any field may contain any text. Once its
	// Write has returned, a record is visible in every process of the sink, permanently. An unknown stream has
	// no records.
	Read(ctx context.Context, stream string, after uint64, limit int) ([]Record, error)
}

// Record says who did what, and with what result. Stream and Sequence together identify it.
type Record struct {
	Sequence  uint64          `json:"sequence"` // at least 1
	Time      time.Time       `json:"time"`     // according to the server's clock
	Actor     string          `json:"actor"`    // user id; "" for an unknown sender
	Address   string          `json:"address,omitempty"`
	Workspace string          `json:"workspace,omitempty"`
	Action    string          `json:"action"`           // such as tools.call, tools.call.ended or POST /v1/apps/install
	Target    string          `json:"target,omitempty"` // the object of the action
	Outcome   string          `json:"outcome"`          // ok, allowed, input_required, tool_error, rpc_error, cancelled, or an error code such as forbidden
	Reason    string          `json:"reason,omitempty"` // why it was refused or failed, human-readable
	RequestID string          `json:"requestId,omitempty"`
	TraceID   string          `json:"traceId,omitempty"`
	Duration  float64         `json:"durationMs,omitempty"` // milliseconds, for completed actions
	Arguments json.RawMessage `json:"arguments,omitempty"`  // of a tool call, one JSON value; only if configured
}

// Entry is a record with its stream: the form in which the built-in sinks write records as JSON.
type Entry struct {
	Stream string `json:"stream"`
	Record
}
