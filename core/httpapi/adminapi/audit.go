package adminapi

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/query"
	"github.com/ropewalk/ropewalk/core/httpapi/respond"
)

// AuditTrail reads what was recorded. Its errors are core.Errors.
type AuditTrail interface {
	Records(ctx context.Context, q core.AuditQuery) (core.AuditPage, error)
}

type auditResponse struct {
	Records    []core.AuditRecord `json:"records"`
	NextCursor *string            `json:"nextCursor"`
}

const (
	auditLimit     = 100 // records of one page, unless the client says how many
	auditMostLimit = 1000
)

// ListAudit is GET /v1/audit: of all workspaces for admins of the organization, of their workspace for
// its admins.
func (h *Handlers) ListAudit(c *fiber.Ctx, caller core.Caller) error {
	q := core.AuditQuery{
		Workspace: c.Query("workspaceId"), Actor: c.Query("actor"), Action: c.Query("action"), Target: c.Query("target"),
		Outcome: c.Query("outcome"), Cursor: c.Query("cursor"),
	}
	if err := caller.MayReadAudit(q.Workspace); err != nil {
		return err
	}
	if !caller.User.OrgRole.Admin() {
		q.Workspace = caller.Workspace.ID
	}
	var err error
	if q.Limit, err = query.Int(c, "limit", auditLimit, auditMostLimit); err != nil {
		return err
	}
	if from := c.Query("from"); from != "" {
		if q.From, _, err = query.Time("from", from); err != nil {
			return err
		}
	}
	if to := c.Query("to"); to != "" {
		var day bool
		if q.To, day, err = query.Time("to", to); err != nil {
			return err
		}
		if day {
			q.To = q.To.AddDate(0, 0, 1)
		}
	}
	page, err := h.Audit.Records(c.UserContext(), q)
	if err != nil {
		return err
	}
	return c.JSON(auditResponse{Records: respond.OrEmpty(page.Records), NextCursor: respond.OrNull(page.Next)})
}
