package trust

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/core"
)

// isAllowed reports whether calls to a tool with its current definition need no approval.
func (a *Approvals) isAllowed(ctx context.Context, c core.Caller, t core.Tool) (bool, error) {
	if isDestructive(t) {
		return false, nil
	}
	return a.o.Records.HasStandingApproval(ctx, c.Workspace.ID, t.FullName(), definitionOf(t))
}

// definitionOf identifies the definition of a tool.
func definitionOf(t core.Tool) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []string{t.LongName(), string(t.Raw), string(t.Schema)}))
	return hex.EncodeToString(sum[:])
}

// approveOthers approves other waiting calls that a standing approval now allows. A call that cannot be
// approved keeps waiting.
func (a *Approvals) approveOthers(ctx context.Context, c core.Caller, granted core.Approval) {
	for q := (core.ApprovalQuery{State: core.ApprovalPending}); ; {
		page, err := a.o.Records.Approvals(ctx, c.Workspace.ID, q)
		if err != nil {
			a.o.Logger.Warn("could not approve the other waiting calls to an allowed tool", "tool", granted.Tool, "error", err)
			return
		}
		for _, other := range page.Approvals {
			if other.Tool != granted.Tool || other.Definition != granted.Definition || c.MayAlwaysApprove(other) != nil {
				continue
			}
			_, err := a.Decide(ctx, c, other.ID, core.Decision{Approve: true, Reason: granted.Reason})
			if err != nil && core.CodeOf(err) != core.CodeAlreadyAnswered {
				a.o.Logger.Warn("could not approve another waiting call to an allowed tool", "approval", other.ID, "error", err)
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return
		}
	}
}

// Standing returns the standing approvals of c's workspace, for its admins, except those of tools that are hidden from c.
func (a *Approvals) Standing(ctx context.Context, c core.Caller) ([]core.StandingApproval, error) {
	if err := mayManage(c); err != nil {
		return nil, err
	}
	all, err := a.o.Records.StandingApprovals(ctx, c.Workspace.ID)
	return slices.DeleteFunc(all, func(one core.StandingApproval) bool { return !a.o.Shows.tool(c, "", one.Tool) }), err
}

// Withdraw withdraws a standing approval, so that later calls to its tool wait again. The error is core.CodeNotFound if
// c sees no tool with such an approval.
func (a *Approvals) Withdraw(ctx context.Context, c core.Caller, id string) (core.StandingApproval, error) {
	if err := mayManage(c); err != nil {
		return core.StandingApproval{}, err
	}
	withdrawn, err := a.o.Records.WithdrawApproval(ctx, c.Workspace.ID, id, func(tool string) bool { return a.o.Shows.tool(c, "", tool) })
	if err != nil {
		return withdrawn, err
	}
	a.o.Events.Publish(core.Event{Name: core.EventApprovalWithdrawn, Workspace: withdrawn.Workspace, Data: core.ApprovalWithdrawn{
		ID: withdrawn.ID, Tool: withdrawn.Tool, By: c.User.ID,
	}})
	return withdrawn, nil
}

func mayManage(c core.Caller) error {
	if !c.Workspace.Role.Admin() {
		return core.Errorf(core.CodeForbidden, "standing approvals require the admin role in workspace %s", c.Workspace.ID)
	}
	return nil
}
