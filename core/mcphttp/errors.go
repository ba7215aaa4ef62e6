package mcphttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/gofiber/fiber/v2"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
)

const (
	codeCancelled        = -32800 // a call that its client cancelled; its POST still needs an answer
	codeResourceNotFound = -32002 // with sessions only; stateless requests get invalid params
)

func internalError() error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
}

func invalidParams(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// errorOf returns the JSON-RPC error of a failed call.
func errorOf(err error) rpcError {
	known, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return rpcError{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	}
	r := rpcError{Code: known.Code, Message: known.Message}
	if len(known.Data) > 0 {
		r.Data = known.Data
	}
	return r
}

// statusOf returns the HTTP status of an error in revision 2026-07-28 (basic/transports). Errors about the request
// itself get a 4xx status.
func statusOf(code int64) int {
	switch code {
	case jsonrpc.CodeMethodNotFound:
		return fiber.StatusNotFound
	case jsonrpc.CodeInvalidParams, mcp.CodeHeaderMismatch, mcp.CodeMissingRequiredClientCapabilities, mcp.CodeUnsupportedProtocolVersion:
		return fiber.StatusBadRequest
	}
	return fiber.StatusOK
}

// refusal turns an error of package tools into a JSON-RPC error. An app's own error passes unchanged. A name that the
// caller may not use is reported as unknown, as if it did not exist.
func (e *Endpoint) refusal(k *call, name string, err error) error {
	if failure, ok := errors.AsType[*rpc.Error](err); ok {
		return k.ofRevision(failure)
	}
	if k.context.Err() != nil {
		return &jsonrpc.Error{Code: codeCancelled, Message: "the call was cancelled"}
	}
	known, ok := errors.AsType[*core.Error](err)
	if !ok {
		e.log.Error("call failed", "method", k.Method, "name", name, "error", err)
		return internalError()
	}
	switch known.Code {
	case core.CodeToolNotFound, core.CodeFeatureDisabled, core.CodeForbidden:
		return invalidParams("Unknown tool: %s", name)
	case core.CodeBadRequest, core.CodeInvalidInput, core.CodeNotFound:
		return invalidParams("%s", known.Message)
	case core.CodeResourceNotFound:
		data, _ := json.Marshal(known.Details) // strings always encode
		return k.ofRevision(&rpc.Error{Code: codeResourceNotFound, Message: known.Message, Data: data})
	case core.CodeInternal:
		e.log.Error("call failed", "method", k.Method, "name", name, "error", err)
		return internalError()
	default:
		return &jsonrpc.Error{Code: codeServer, Message: known.Message, Data: []byte(`{"error":` + strconv.Quote(string(known.Code)) + `}`)}
	}
}

// ofRevision returns an app's error with the code that the caller's revision uses.
func (k *call) ofRevision(err *rpc.Error) error {
	code := int64(err.Code)
	if k.session == nil && code == codeResourceNotFound {
		code = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{Code: code, Message: err.Message, Data: err.Data}
}
