package core

import (
	"encoding/json"
	"time"
)

// Approval is a tool call that is waiting, or has waited, for a person's decision.
type Approval struct {
	ID          string
	Workspace   string
	Caller      User
	Key         string // the id of the API key that made the call; "" for other callers
	Tool        string // full name
	Fingerprint string // hash of the caller, the tool, the tool's definition and the arguments
	Definition  string // hash of the tool's definition; "" if an older version of the server made the request
	Destructive bool   // the tool has the annotation destructiveHint
	Arguments   json.RawMessage
	Account     string // the name of the account with which the app is called; "" for none
	State       ApprovalState
	CreatedAt   time.Time
	ExpiresAt   time.Time
	DecidedBy   User      // zero until somebody has decided
	DecidedAt   time.Time // likewise
	Reason      string    // the reason for the decision, for the caller; "" for none
	Always      bool      // the decision is a StandingApproval
}

// StandingApproval lets calls to a tool proceed without an approval, for as long as the tool's definition is unchanged.
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
	// ApprovalExpired means that nobody decided in time, or that the approved call was not made in time.
	ApprovalExpired ApprovalState = "expired"
	// ApprovalCancelled means that the caller cancelled the call or disconnected before it was made.
	ApprovalCancelled ApprovalState = "cancelled"
)

// MaxReason is the maximum length of Decision.Reason, in characters.
const MaxReason = 1000

// Decision is a person's decision about a waiting call.
type Decision struct {
	Approve bool
	Always  bool   // with Approve: later calls need no approval while the tool's definition is unchanged
	Reason  string // "" for none
}

// ApprovalQuery selects the approvals of a workspace.
type ApprovalQuery struct {
	Caller  string        // User.ID of the caller; "" for all
	State   ApprovalState // "" for all states
	Decided bool          // only those that a person decided, whatever happened afterwards; the latest decision first
	Limit   int           // entries per page; 0 for the maximum
	Cursor  string        // NextCursor of the previous page of the same query; "" for the first page
}

// ApprovalPage is a page of approvals.
type ApprovalPage struct {
	Approvals  []Approval
	NextCursor string // "" on the last page
}

// MayApprove returns nil if c may decide on a waiting call. An admin of the workspace may, but not with an API key of
// the person who made the call, because anyone who has one of a person's credentials may have two. Otherwise the error is
// CodeForbidden.
func (c Caller) MayApprove(a Approval) error {
	if !c.Workspace.Role.Admin() {
		return Errorf(CodeForbidden, "deciding on calls requires the admin role in workspace %s", c.Workspace.ID)
	}
	if c.Scope.Key != "" && c.User.ID == a.Caller.ID {
		return Errorf(CodeForbidden, "a call cannot be approved with an API key of the person who made it; log in to approve it")
	}
	return nil
}

// MayAlwaysApprove returns nil if c may allow all calls to a tool as it was defined when a waiting call was made.
// The caller must be allowed to decide on the call and must not have made it, and the tool must not have the annotation
// destructiveHint. Otherwise the error is CodeForbidden.
func (c Caller) MayAlwaysApprove(a Approval) error {
	if err := c.MayApprove(a); err != nil {
		return err
	}
	switch {
	case c.User.ID == a.Caller.ID:
		return Errorf(CodeForbidden, "the person who made the call cannot allow all calls to tool %q; another admin can", a.Tool)
	case a.Destructive:
		return Errorf(CodeForbidden, "tool %q has the annotation destructiveHint; its calls are approved one at a time", a.Tool)
	case a.Definition == "":
		return Errorf(CodeForbidden, "an older version of the server requested this approval; approve this call, and allow all calls when the next one is made")
	}
	return nil
}
