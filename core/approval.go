package core

import (
	"encoding/json"
	"time"
)

// Approval is a call of a tool that waits for a person, or waited for one.
type Approval struct {
	ID          string
	Workspace   string
	Caller      User
	Key         string // the id of the API key that the call was made with; "" for other callers
	Tool        string // full name
	Fingerprint string // of the call: its caller, tool, the tool's definition and the arguments
	Arguments   json.RawMessage
	State       ApprovalState
	CreatedAt   time.Time
	ExpiresAt   time.Time
	DecidedBy   string // User.ID
}

// ApprovalState is the state of an Approval.
type ApprovalState string

// The states.
const (
	ApprovalPending  ApprovalState = "pending"
	ApprovalApproved ApprovalState = "approved" // one call may be made
	ApprovalRefused  ApprovalState = "refused"
	ApprovalUsed     ApprovalState = "used" // the call was made
	ApprovalExpired  ApprovalState = "expired"
)

// MayApprove says whether c may decide on a call that waits: an admin of the workspace may, but not with
// the API key that made the call.
func (c Caller) MayApprove(a Approval) error {
	if !c.Workspace.Role.Admin() {
		return Errorf(CodeForbidden, "deciding on calls needs the role admin in workspace %s", c.Workspace.ID)
	}
	if a.Key != "" && c.Scope.Key == a.Key {
		return Errorf(CodeForbidden, "a call cannot be approved with the API key that made it")
	}
	return nil
}
