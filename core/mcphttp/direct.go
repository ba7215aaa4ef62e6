package mcphttp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
)

// isDirect reports whether a message can go straight to the tools, past the SDK's session: calls of
// the two methods that this door answers by itself, in a form at which the SDK, which would decode
// the params, could find no fault. Everything else takes the SDK's way, and gets its words.
func (m message) isDirect() bool {
	if m.id == nil {
		return false
	}
	var name string // the one field that decides
	switch m.method {
	case "tools/call":
		name = "name"
	case "tools/list":
		if m.params == nil {
			return true
		}
		name = "cursor"
	default:
		return false
	}
	for field, value := range m.fields {
		switch {
		case field == name && value[0] == '"', field == "arguments" && name == "name":
		case field == "_meta" && plainMeta(value):
		default:
			return false
		}
	}
	return m.fields != nil
}

// plainMeta reports whether a _meta holds flat values that any decoder takes, and nothing that
// makes the request one of the revision without sessions.
func plainMeta(text json.RawMessage) bool {
	fields, ok := object(text)
	for name, value := range fields {
		switch value[0] {
		case '"', 't', 'f', 'n':
		default:
			ok = ok && len(value) < 16 && strings.Trim(string(value), "0123456789") == "" // a small number
		}
		ok = ok && !strings.HasPrefix(name, "io.modelcontextprotocol/")
	}
	return ok
}

// deliverDirect answers one call without the SDK's session: same checks, same answers, less work.
func (e *Endpoint) deliverDirect(c *fiber.Ctx, s *session, caller core.Caller, m message) error {
	x := newExchange(1, false)
	k := &call{message: m, caller: caller, out: x}
	ctx, cancel := context.WithCancel(e.root)
	x.cancel = cancel
	if f := e.begin(s, []*call{k}); f != nil {
		cancel()
		return f.send(c)
	}
	ctx = context.WithValue(ctx, callKey{}, k)
	if m.method == "tools/list" { // waits for nobody
		e.answerDirect(ctx, s, k)
	} else {
		go e.answerDirect(ctx, s, k)
	}
	return x.send(c)
}

// answerDirect runs a call and answers it, unless the session's end has done so before. A panic
// fails its call alone (hardening row 4).
func (e *Endpoint) answerDirect(ctx context.Context, s *session, k *call) {
	result, err := e.resultOf(ctx, k)
	s.answer(k.number, func(id json.RawMessage) []byte {
		if err != nil {
			known := rpcErrorOf(err)
			return errorBody(id, known.Code, known.Message, known.Data)
		}
		return resultBody(id, result)
	})
}

func (e *Endpoint) resultOf(ctx context.Context, k *call) (raw json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("A call panicked.", "method", k.method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			raw, err = nil, internal()
		}
	}()
	var result mcp.Result
	if k.method == "tools/list" {
		result, err = e.listTools(k)
	} else {
		result, err = e.callTool(ctx, k)
	}
	if err != nil {
		return nil, err
	}
	if known, ok := result.(json.Marshaler); ok {
		return known.MarshalJSON()
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // as the SDK does
	err = enc.Encode(result)
	return bytes.TrimSpace(text.Bytes()), err
}

// cancelDirect ends a call at its client's wish. It is false for a call that the SDK runs.
func (s *session) cancelDirect(n int64) bool {
	k := s.call(n)
	if k == nil || k.out.cancel == nil {
		return false
	}
	k.out.cancel()
	return true
}
