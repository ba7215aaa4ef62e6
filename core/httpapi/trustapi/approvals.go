package trustapi

import (
	"encoding/json"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
)

// approvalResponse is a call that waits for a person, or waited for one.
type approvalResponse struct {
	ID          string             `json:"id"`
	Tool        string             `json:"tool"`
	Server      string             `json:"server"`
	Caller      caller             `json:"caller"`
	Arguments   json.RawMessage    `json:"arguments"`
	State       core.ApprovalState `json:"state"`
	RequestedAt string             `json:"requestedAt"`
	ExpiresAt   string             `json:"expiresAt"`
	DecidedBy   string             `json:"decidedBy,omitempty"`
}

type caller struct {
	ID          string `json:"id"`
	Email       string `json:"email"`
	DisplayName string `json:"displayName"`
}

func approvalOf(a core.Approval) approvalResponse {
	server, _, _ := strings.Cut(a.Tool, "__")
	return approvalResponse{
		ID: a.ID, Tool: a.Tool, Server: server, Caller: caller{a.Caller.ID, a.Caller.Email, a.Caller.DisplayName}, Arguments: a.Arguments,
		State: a.State, RequestedAt: core.Timestamp(a.CreatedAt), ExpiresAt: core.Timestamp(a.ExpiresAt), DecidedBy: a.DecidedBy,
	}
}

type approvalsResponse struct {
	Approvals []approvalResponse `json:"approvals"`
}

// ListApprovals is GET /v1/approvals.
func (h *Handlers) ListApprovals(c *fiber.Ctx, caller core.Caller) error {
	all, err := h.Approvals.List(c.UserContext(), caller)
	if err != nil {
		return err
	}
	response := approvalsResponse{Approvals: make([]approvalResponse, len(all))}
	for i, a := range all {
		response.Approvals[i] = approvalOf(a)
	}
	return c.JSON(response)
}

// DecideApproval is POST /v1/approvals/:id.
func (h *Handlers) DecideApproval(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[decisionRequest](c.Context())
	if err != nil {
		return err
	}
	if r.Decision != "approve" && r.Decision != "refuse" {
		return core.Errorf(core.CodeBadRequest, "decision must be approve or refuse")
	}
	a, err := h.Approvals.Decide(c.UserContext(), caller, c.Params("id"), r.Decision == "approve")
	if err != nil {
		return err
	}
	return c.JSON(approvalOf(a))
}
