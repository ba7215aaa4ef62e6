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
	Definition  string // hash of the tool's definition; "" when it was requested by an older version
	Destructive bool   // the tool has the annotation destructiveHint
	Arguments   json.RawMessage
	Account     string // the name of the account that the app is called with; "" for none
	State       ApprovalState
	CreatedAt   time.Time
	ExpiresAt   time.Time
	DecidedBy   User      // zero until somebody decided
	DecidedAt   time.Time // zero, too
	Reason      string    // of the decision, for the caller; "" for none
	Always      bool      // the decision is a StandingApproval
}

// StandingApproval lets the calls of a tool go on without an approval, for as long as it is defined as it was.
type StandingApproval struct {
	ID         string
	Workspace  string
	Tool       string // full name
	Definition string // hash
	By         User
	Since      time.Time
}

// ApprovalState is the state of an Approval.
type ApprovalState string

// The states.
const (
	ApprovalPending  ApprovalState = "pending"
	ApprovalApproved ApprovalState = "approved" // one call may be made
	ApprovalRefused  ApprovalState = "refused"
	ApprovalUsed     ApprovalState = "used" // the call was made
	// ApprovalExpired: nobody decided in time, or the approved call was not made in time.
	ApprovalExpired ApprovalState = "expired"
	// ApprovalCancelled: the call ended before it was made, as its caller cancelled it or disconnected.
	ApprovalCancelled ApprovalState = "cancelled"
)

// MaxReason is how many characters the reason of a Decision has at most.
const MaxReason = 1000

// Decision is what a person decides about a call that waits.
type Decision struct {
	Approve bool
	Always  bool   // with Approve: later calls of the tool as it is defined need no approval
	Reason  string // "" for none
}

// ApprovalQuery selects the approvals of a workspace.
type ApprovalQuery struct {
	Caller  string        // User.ID of the caller; "" for all
	State   ApprovalState // only those in this state; "" for all
	Decided bool          // only those that a person decided, whatever came of them; the last decision first
	Limit   int           // of a page; 0 for the most
	Cursor  string        // NextCursor of the page before, which was asked for in the same way; "" for the first
}

// ApprovalPage is a page of approvals.
type ApprovalPage struct {
	Approvals  []Approval
	NextCursor string // "" at the end
}

// MayApprove says whether c may decide on a call that waits: an admin of the workspace may, but not with an API key of
// the person who made the call. Whatever holds one credential of a person may hold two.
func (c Caller) MayApprove(a Approval) error {
	if !c.Workspace.Role.Admin() {
		return Errorf(CodeForbidden, "deciding on calls needs the role admin in workspace %s", c.Workspace.ID)
	}
	if c.Scope.Key != "" && c.User.ID == a.Caller.ID {
		return Errorf(CodeForbidden, "a call cannot be approved with an API key of the person who made it; log in to approve it")
	}
	return nil
}

// MayAlwaysApprove says whether c may let all calls of the tool go on, as it was defined for a call that waits: whoever
// may decide on the call and did not make it, for a tool that does not say that it is destructive.
func (c Caller) MayAlwaysApprove(a Approval) error {
	if err := c.MayApprove(a); err != nil {
		return err
	}
	switch {
	case c.User.ID == a.Caller.ID:
		return Errorf(CodeForbidden, "whoever made the call cannot allow all calls of tool %q; another admin can", a.Tool)
	case a.Destructive:
		return Errorf(CodeForbidden, "tool %q has the annotation destructiveHint; its calls are approved one at a time", a.Tool)
	case a.Definition == "":
		return Errorf(CodeForbidden, "an older version of the server requested this approval; approve this call, and allow all with the next one")
	}
	return nil
}
