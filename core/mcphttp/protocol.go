package mcphttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// revisions are the protocol revisions that have sessions, newest first.
func revisions() []string { return []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} }

// codeCancelled answers a call that its client cancelled: the POST needs some answer.
const codeCancelled = -32800

// newServer makes the SDK's server that all sessions share. It holds no tools: the middleware
// answers for the caller of each request.
func (e *Endpoint) newServer() *mcp.Server {
	s := mcp.NewServer(e.implementation(), &mcp.ServerOptions{
		Instructions:              instructions,
		Capabilities:              capabilities(),
		SupportedProtocolVersions: revisions(),
	})
	s.AddReceivingMiddleware(e.middleware)
	return s
}

type (
	sessionKey struct{} // the session of a connection's context
	callKey    struct{} // the call of a request's context
)

// callOf is the call that ctx belongs to, nil outside of one.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// middleware answers the methods of this door's own and lets the SDK answer the rest. A panic
// fails its call alone (hardening row 4).
func (e *Endpoint) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				e.log.Error("A call panicked", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				result, err = nil, internal()
			}
		}()
		k := callFrom(ctx, req)
		if k == nil {
			e.heard(ctx, method)
			return next(ctx, method, req)
		}
		ctx = context.WithValue(ctx, callKey{}, k)
		do := e.sessionMethod(method)
		if do == nil {
			return next(ctx, method, req)
		}
		raw, err := do(ctx, k)
		if err != nil {
			return nil, err
		}
		return rawResult{&mcp.CallToolResult{}, raw}, nil
	}
}

// heard passes on what a client says by itself to the apps it concerns.
func (e *Endpoint) heard(ctx context.Context, method string) {
	s, _ := ctx.Value(sessionKey{}).(*session)
	if s == nil || s.place == nil || method != "notifications/roots/list_changed" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	s.place.RootsChanged(ctx)
}

// callFrom finds the call by the number that travelled with the request.
func callFrom(ctx context.Context, req mcp.Request) *call {
	s, _ := ctx.Value(sessionKey{}).(*session)
	if s == nil || req.GetExtra() == nil {
		return nil
	}
	n, err := strconv.ParseInt(req.GetExtra().Header.Get(key), 10, 64)
	if err != nil {
		return nil
	}
	return s.call(n)
}

func internal() error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
}

func invalidParams(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// rpcErrorOf keeps the code, message and data of a JSON-RPC error; wrapping one loses its data.
func rpcErrorOf(err error) rpcError {
	known, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return rpcError{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	}
	r := rpcError{Code: known.Code, Message: err.Error()}
	if len(known.Data) > 0 {
		r.Data = known.Data
	}
	return r
}

// refusal turns what the tools room answers into a JSON-RPC error. An app's own error passes
// unchanged; what a caller may not use is as unknown to it as what does not exist.
func (e *Endpoint) refusal(ctx context.Context, k *call, name string, err error) error {
	if failure, ok := errors.AsType[*rpc.Error](err); ok {
		return k.inItsWords(failure)
	}
	if ctx.Err() != nil {
		return &jsonrpc.Error{Code: codeCancelled, Message: "the call was cancelled"}
	}
	known, ok := asError(err)
	if !ok {
		e.log.Error("A call failed inside the server", "method", k.method, "name", name, "error", err)
		return internal()
	}
	switch known.Code {
	case core.CodeToolNotFound, core.CodeFeatureDisabled, core.CodeForbidden:
		return invalidParams("Unknown tool: %s", name)
	case core.CodeBadRequest, core.CodeInvalidInput, core.CodeNotFound:
		return invalidParams("%s", known.Message)
	case core.CodeResourceNotFound:
		data, _ := json.Marshal(known.Details) // strings always marshal
		return k.inItsWords(&rpc.Error{Code: codeResourceNotFound, Message: known.Message, Data: data})
	case core.CodeInternal:
		e.log.Error("A call failed inside the server", "method", k.method, "name", name, "error", err)
		return internal()
	default:
		return &jsonrpc.Error{Code: codeServer, Message: known.Message, Data: []byte(`{"error":` + strconv.Quote(string(known.Code)) + `}`)}
	}
}

// codeResourceNotFound is what sessions know; without one it is an error of the params.
const codeResourceNotFound = -32002

// inItsWords is an app's error as the caller's revision writes it.
func (k *call) inItsWords(err *rpc.Error) error {
	if k.modern && err.Code == codeResourceNotFound {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Message, Data: err.Data}
	}
	return &jsonrpc.Error{Code: int64(err.Code), Message: err.Message, Data: err.Data}
}

func asError(err error) (*core.Error, bool) { return errors.AsType[*core.Error](err) }
