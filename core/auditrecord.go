package core

import (
	"encoding/json"
	"strings"
	"time"
)

// AuditRecord says who did what, and how it ended.
type AuditRecord struct {
	Time      time.Time       `json:"time"`
	Actor     string          `json:"actor"` // user id; "" for a sender that is not known
	Address   string          `json:"address,omitempty"`
	Workspace string          `json:"workspace,omitempty"`
	Action    string          `json:"action"`               // such as tools.call, tools.call.ended or POST /v1/apps/install
	Target    string          `json:"target,omitempty"`     // what it was done to
	Outcome   string          `json:"outcome"`              // ok, allowed, input_required, tool_error, rpc_error, cancelled, or an error code such as forbidden
	Reason    string          `json:"reason,omitempty"`     // why it was refused or failed, for people
	Duration  float64         `json:"durationMs,omitempty"` // milliseconds, of what has ended
	RequestID string          `json:"requestId,omitempty"`
	TraceID   string          `json:"traceId,omitempty"`   // of the request, when it has a trace
	Arguments json.RawMessage `json:"arguments,omitempty"` // of a tool call; only where configured
}

// AuditQuery selects audit records. An empty field selects all.
type AuditQuery struct {
	Workspace string // "" is every workspace, and records of none
	Actor     string // a user id
	Action    string // what the action contains
	Target    string // what the target contains
	Outcome   string
	From, To  time.Time // To is exclusive
	Limit     int       // records of one page, at least 1
	Cursor    string    // AuditPage.Next of the page before; "" begins with the newest record
}

// Selects reports whether q selects r.
func (q *AuditQuery) Selects(r *AuditRecord) bool {
	return (q.Workspace == "" || r.Workspace == q.Workspace) &&
		(q.Actor == "" || r.Actor == q.Actor) &&
		strings.Contains(r.Action, q.Action) && strings.Contains(r.Target, q.Target) &&
		(q.Outcome == "" || r.Outcome == q.Outcome) &&
		(q.From.IsZero() || !r.Time.Before(q.From)) && (q.To.IsZero() || r.Time.Before(q.To))
}

// AuditPage is a part of the audit trail, the newest record first.
type AuditPage struct {
	Records []AuditRecord
	Next    string // the cursor of the page that follows; "" when there is none
}
