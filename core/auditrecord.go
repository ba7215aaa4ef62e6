package core

import (
	"encoding/json"
	"strings"
	"time"
)

// AuditRecord records who did what, and how it ended.
type AuditRecord struct {
	Time      time.Time       `json:"time"`
	Actor     string          `json:"actor"` // user id; "" if the sender is unknown
	Address   string          `json:"address,omitempty"`
	Workspace string          `json:"workspace,omitempty"`
	Action    string          `json:"action"`               // such as tools.call, tools.call.ended or POST /v1/apps/install
	Target    string          `json:"target,omitempty"`     // what the action was applied to
	Outcome   string          `json:"outcome"`              // ok, allowed, input_required, tool_error, rpc_error, cancelled, or an error code such as forbidden
	Reason    string          `json:"reason,omitempty"`     // human-readable: why it was refused or failed
	Duration  float64         `json:"durationMs,omitempty"` // in milliseconds; set once the action has ended
	RequestID string          `json:"requestId,omitempty"`
	CallID    string          `json:"callId,omitempty"`    // the same in both records of a request to an app; "" in others
	TraceID   string          `json:"traceId,omitempty"`   // the trace of the request, if it is traced
	Arguments json.RawMessage `json:"arguments,omitempty"` // the arguments of a tool call, if recording them is configured
}

// AuditQuery selects audit records. An empty field matches every record.
type AuditQuery struct {
	Workspace string // "" matches every workspace, and records without one
	Actor     string // a user id
	Action    string // a substring of the action
	Target    string // a substring of the target
	Outcome   string
	From, To  time.Time // To is exclusive
	Limit     int       // maximum number of records on the page, at least 1
	Cursor    string    // AuditPage.Next of the previous page; "" starts with the newest record
}

// Selects reports whether q selects r.
func (q *AuditQuery) Selects(r *AuditRecord) bool {
	return (q.Workspace == "" || r.Workspace == q.Workspace) &&
		(q.Actor == "" || r.Actor == q.Actor) &&
		strings.Contains(r.Action, q.Action) && strings.Contains(r.Target, q.Target) &&
		(q.Outcome == "" || r.Outcome == q.Outcome) &&
		(q.From.IsZero() || !r.Time.Before(q.From)) && (q.To.IsZero() || r.Time.Before(q.To))
}

// AuditPage is one page of the audit trail, newest record first.
type AuditPage struct {
	Records []AuditRecord
	Next    string // the cursor of the next page; "" on the last page
}
