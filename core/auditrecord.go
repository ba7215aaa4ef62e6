package core

import (
	"encoding/json"
	"time"
)

// AuditRecord says who did what, and how it ended.
type AuditRecord struct {
	Time      time.Time       `json:"time"`
	Actor     string          `json:"actor"` // user id; "" for a sender that is not known
	Address   string          `json:"address,omitempty"`
	Workspace string          `json:"workspace,omitempty"`
	Action    string          `json:"action"`           // such as tools.call or POST /v1/apps/install
	Target    string          `json:"target,omitempty"` // what it was done to
	Outcome   string          `json:"outcome"`          // ok, allowed, or an error code such as forbidden
	RequestID string          `json:"requestId,omitempty"`
	TraceID   string          `json:"traceId,omitempty"`   // of the request, when it has a trace
	Arguments json.RawMessage `json:"arguments,omitempty"` // of a tool call; only where configured
}
