package tools

import (
	"context"

	"github.com/ropewalk/ropewalk/core"
)

// Auditor records what was done. Its error means that what is not recorded must not be done.
type Auditor interface {
	Record(ctx context.Context, r core.AuditRecord) error
}

// auditCall records a call before it is made, with the reason when it is refused. A tool that an app may
// still announce is recorded as not found.
func (n *Namespace) auditCall(ctx context.Context, c core.Caller, call *Call, err error) error {
	if n.audit == nil {
		return nil
	}
	outcome := "allowed"
	if err != nil {
		outcome = string(core.CodeOf(err))
	}
	return n.audit.Record(ctx, core.AuditRecord{
		Actor: c.User.ID, Workspace: c.Workspace.ID, Action: "tools.call", Target: call.Name, Outcome: outcome, Arguments: call.Arguments,
	})
}
