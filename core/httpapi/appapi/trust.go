package appapi

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
)

// Pins manages changes to the pinned tool definitions of apps.
type Pins interface {
	Changes(ctx context.Context, c core.Caller) ([]core.PinChange, error)
	Decide(ctx context.Context, c core.Caller, id string, accept bool) (core.PinChange, error)
}

// Approvals manages the calls that wait for a person's approval.
type Approvals interface {
	List(ctx context.Context, c core.Caller, q core.ApprovalQuery) (core.ApprovalPage, error)
	Decide(ctx context.Context, c core.Caller, id string, d core.Decision) (core.Approval, error)
	Standing(ctx context.Context, c core.Caller) ([]core.StandingApproval, error)
	Withdraw(ctx context.Context, c core.Caller, id string) (core.StandingApproval, error)
}

// ListPins handles GET /v1/pins.
func (h *Handlers) ListPins(c *fiber.Ctx, caller core.Caller) (any, error) {
	changes, err := h.Pins.Changes(c.UserContext(), caller)
	return fiber.Map{"pins": httpio.OrEmpty(changes)}, err
}

// Decision is the request body of DecidePin.
type Decision struct {
	Decision string `json:"decision"`
}

// DecidePin handles POST /v1/pins/:id.
func (h *Handlers) DecidePin(c *fiber.Ctx, caller core.Caller, r Decision) (any, error) {
	if r.Decision != "accept" && r.Decision != "refuse" {
		return nil, core.Errorf(core.CodeBadRequest, "decision must be accept or refuse")
	}
	return h.Pins.Decide(c.UserContext(), caller, c.Params("id"), r.Decision == "accept")
}

// approvalResponse is a call that is waiting, or has waited, for a person's decision.
type approvalResponse struct {
	ID          string             `json:"id"`
	Tool        string             `json:"tool"`
	Server      string             `json:"server"`
	Caller      person             `json:"caller"`
	Account     string             `json:"account,omitempty"`
	Arguments   json.RawMessage    `json:"arguments,omitempty"`
	State       core.ApprovalState `json:"state"`
	RequestedAt string             `json:"requestedAt"`
	ExpiresAt   string             `json:"expiresAt"`
	DecidedBy   string             `json:"decidedBy,omitempty"`
	Decider     *person            `json:"decider,omitempty"`
	DecidedAt   string             `json:"decidedAt,omitempty"`
	Reason      string             `json:"reason,omitempty"`
	Always      bool               `json:"always,omitempty"`
	MayAlways   bool               `json:"mayAlways,omitempty"`
}

type person struct {
	ID          string `json:"id"`
	Email       string `json:"email"`
	DisplayName string `json:"displayName"`
}

func approvalOf(a core.Approval, by core.Caller) approvalResponse {
	server, _, _ := strings.Cut(a.Tool, "__")
	r := approvalResponse{
		ID: a.ID, Tool: a.Tool, Server: server, Caller: personOf(a.Caller), Account: a.Account, Arguments: a.Arguments,
		State: a.State, RequestedAt: core.Timestamp(a.CreatedAt), ExpiresAt: core.Timestamp(a.ExpiresAt), DecidedBy: a.DecidedBy.ID, Reason: a.Reason,
		Always: a.Always, MayAlways: a.State == core.ApprovalPending && by.MayAlwaysApprove(a) == nil,
	}
	if a.DecidedBy.ID != "" {
		decider := personOf(a.DecidedBy)
		r.Decider, r.DecidedAt = &decider, core.Timestamp(a.DecidedAt)
	}
	return r
}

func personOf(u core.User) person { return person{u.ID, u.Email, u.DisplayName} }

// ListApprovals handles GET /v1/approvals.
func (h *Handlers) ListApprovals(c *fiber.Ctx, caller core.Caller) (any, error) {
	q := core.ApprovalQuery{Cursor: c.Query("cursor")}
	switch state := c.Query("state"); state {
	case "":
	case string(core.ApprovalPending):
		q.State = core.ApprovalPending
	case "decided":
		q.Decided = true
	default:
		return nil, core.Errorf(core.CodeBadRequest, "state must be pending or decided")
	}
	var err error
	if q.Limit, err = httpio.QueryInt(c, "limit", maxApprovals, maxApprovals); err != nil {
		return nil, err
	}
	page, err := h.Approvals.List(c.UserContext(), caller, q)
	if err != nil {
		return nil, err
	}
	shown := make([]approvalResponse, len(page.Approvals))
	for i, a := range page.Approvals {
		shown[i] = approvalOf(a, caller)
	}
	return fiber.Map{"approvals": shown, "nextCursor": httpio.OrNull(page.NextCursor)}, nil
}

// maxApprovals is both the maximum and the default number of approvals per page.
const maxApprovals = 500

// CallDecision is the request body of DecideApproval.
type CallDecision struct {
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
}

// DecideApproval handles POST /v1/approvals/:id.
func (h *Handlers) DecideApproval(c *fiber.Ctx, caller core.Caller, r CallDecision) (any, error) {
	d := core.Decision{Approve: r.Decision != "refuse", Always: r.Decision == "always", Reason: r.Reason}
	if d.Approve && !d.Always && r.Decision != "approve" {
		return nil, core.Errorf(core.CodeBadRequest, "decision must be approve, always or refuse")
	}
	a, err := h.Approvals.Decide(c.UserContext(), caller, c.Params("id"), d)
	return approvalOf(a, caller), err
}

// standingResponse is a tool whose calls need no approval as long as its definition does not change.
type standingResponse struct {
	ID        string `json:"id"`
	Tool      string `json:"tool"`
	Server    string `json:"server"`
	GrantedBy person `json:"grantedBy"`
	Since     string `json:"since"`
}

func standingOf(a core.StandingApproval) standingResponse {
	server, _, _ := strings.Cut(a.Tool, "__")
	return standingResponse{ID: a.ID, Tool: a.Tool, Server: server, GrantedBy: personOf(a.By), Since: core.Timestamp(a.Since)}
}

// ListStanding handles GET /v1/approvals/always.
func (h *Handlers) ListStanding(c *fiber.Ctx, caller core.Caller) (any, error) {
	all, err := h.Approvals.Standing(c.UserContext(), caller)
	if err != nil {
		return nil, err
	}
	shown := make([]standingResponse, len(all))
	for i, a := range all {
		shown[i] = standingOf(a)
	}
	return fiber.Map{"always": shown}, nil
}

// Withdraw handles DELETE /v1/approvals/always/:id.
func (h *Handlers) Withdraw(c *fiber.Ctx, caller core.Caller) (any, error) {
	a, err := h.Approvals.Withdraw(c.UserContext(), caller, c.Params("id"))
	return standingOf(a), err
}
