package tools

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// From describes the origin of a request. The zero value is a caller without a client to which apps could send
// requests or notifications.
type From struct {
	Session      *Session       // the session of the request; nil for none
	Asker        interact.Asker // sends apps' requests to the session's client during the call; nil if that is not possible
	Surface      Surface        // how tools are listed; "" is SurfaceFull
	ShortResults bool           // the client's results are shortened to fit, so system__read_result is listed
	Stateless    bool           // the client uses MCP 2026-07-28: results may ask for input, and apps send no requests

	// Uses reports whether the client can use a tool that it would see. Searches leave out the others. nil means all.
	Uses func(name string) bool
}

// request is a caller's request to an app or to one of the server's own tools: a tool call (Call), or a request about
// a prompt or a resource (appRequest).
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

// Auditor records requests. If Record returns an error, the request must not be made.
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
	if n.o.Audit == nil {
		return r.send(ctx)
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
	if n.o.Audit == nil {
		return core.AuditRecord{}
	}
	method, target, arguments := r.record()
	record := core.AuditRecord{Actor: c.User.ID, Workspace: c.Workspace.ID, Action: strings.ReplaceAll(method, "/", "."), Target: target, Arguments: arguments}
	if err != nil {
		record.Outcome = outcomeOf(callResult{}, err)
	} else {
		record.Outcome, record.CallID = "allowed", core.RandomID("call_")
	}
	return record
}

func (n *Namespace) record(ctx context.Context, r core.AuditRecord) error {
	if n.o.Audit == nil {
		return nil
	}
	return n.o.Audit.Record(ctx, r)
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

// request returns a request to an app on behalf of a client. meta is the _meta of params.
func (n *Namespace) request(c core.Caller, method string, params, meta json.RawMessage, notify func(rpc.Notification), from From) *interact.Call {
	call := &interact.Call{Request: link.Request{Method: method, Params: params, Notify: notify, Sender: c.User.ID}, Asker: from.Asker, Client: n.client(from)}
	if call.Asker != nil && !c.MayNameRoots() {
		call.Asker = rootless{call.Asker}
	}
	switch {
	case from.Stateless:
		call.Owner, call.Issued = c.Principal(), c.Issuer+"\x00"+c.Subject
		call.Notify = withMinimumLevel(requestedLevel(meta), notify)
	case from.Session != nil:
		if level := from.Session.level(); level > 0 {
			call.Notify = withMinimumLevel(level, notify)
		}
	}
	return call
}

// client returns the client of a request as apps see it, or nil if the request has no client.
func (n *Namespace) client(from From) *interact.Client {
	switch {
	case from.Stateless:
		return n.stateless
	case from.Session != nil:
		return from.Session.client
	}
	return nil
}
