package tools

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// request is a caller's request to an app or to one of the server's own tools: a tool call (toolCall), or a request
// about a prompt or a resource (appRequest).
type request interface {
	// startSpan starts the span of the request, if it has its own.
	startSpan(ctx context.Context) (context.Context, tracing.Span)
	// admit finds the target and applies the policy: rights, pins, the schema, an approval. It waits for an app that
	// is starting, and for the approval.
	admit(ctx context.Context) error
	// record describes the request for the audit log.
	record() (method, target string, arguments json.RawMessage)
	// send makes the request.
	send(ctx context.Context) (json.RawMessage, callResult, error)
	// measure records the request in the metrics.
	measure(r callResult, err error)
}

// Auditor records what was done. If Record returns an error, the action must not be performed.
type Auditor interface {
	Record(ctx context.Context, r core.AuditRecord) error
}

// perform makes a request. Everything around a request starts and ends here: the span, the policy with pins and
// approval, the audit, and the metrics. A request is recorded before it is made, with the reason if it is refused. A
// request that cannot be recorded is not made. Its end is recorded as well, but an error there does not fail the
// request.
func (n *Namespace) perform(ctx context.Context, c core.Caller, r request) (raw json.RawMessage, result callResult, err error) {
	ctx, span := r.startSpan(ctx)
	defer func() {
		r.measure(result, err)
		span.EndTool(result.isError, err)
	}()
	err = r.admit(ctx)
	record := n.newRecord(c, r, err)
	if unrecorded := n.record(ctx, record); unrecorded != nil {
		return nil, result, unrecorded
	}
	if err != nil {
		return nil, result, err
	}
	began := time.Now()
	record.Arguments = nil
	record.Outcome = string(core.CodeInternal) // if send panics
	defer func() {
		record.Action, record.Duration = record.Action+".ended", float64(time.Since(began).Microseconds())/1000
		_ = n.record(context.WithoutCancel(ctx), record) // the request has been made; the error is only logged
	}()
	raw, result, err = r.send(ctx)
	record.Outcome = outcomeOf(result, err)
	return raw, result, err
}

// newRecord returns the record of a request that is about to be made, or that is refused with err.
func (n *Namespace) newRecord(c core.Caller, r request, err error) core.AuditRecord {
	if n.audit == nil {
		return core.AuditRecord{}
	}
	method, target, arguments := r.record()
	outcome := "allowed"
	if err != nil {
		outcome = outcomeOf(callResult{}, err)
	}
	return core.AuditRecord{
		Actor: c.User.ID, Workspace: c.Workspace.ID, Action: strings.ReplaceAll(method, "/", "."), Target: target, Outcome: outcome, Arguments: arguments,
	}
}

func (n *Namespace) record(ctx context.Context, r core.AuditRecord) error {
	if n.audit == nil {
		return nil
	}
	return n.audit.Record(ctx, r)
}

// outcomeOf returns the outcome of a request in one word (docs/security.md, "The audit log").
func outcomeOf(r callResult, err error) string {
	switch {
	case r.isError:
		return "tool_error"
	case r.needsInput:
		return "input_required"
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	if _, ok := errors.AsType[*rpc.Error](err); ok {
		return "rpc_error"
	}
	return string(core.CodeOf(err))
}
