package mcphttp

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/gofiber/fiber/v2"

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
	d := &directCall{call: call{message: m, caller: caller}, exchange: exchange{queue: newQueue()}}
	d.waiting.Store(1)
	d.out = &d.exchange
	ctx, cancel := context.WithCancel(e.root)
	d.cancel = cancel
	if f := e.begin(s, []*call{&d.call}); f != nil {
		cancel()
		return f.send(c)
	}
	if m.method == "tools/list" { // waits for nobody
		e.answerDirect(ctx, s, &d.call)
	} else {
		go e.answerDirect(context.WithValue(ctx, callKey{}, &d.call), s, &d.call)
	}
	return d.send(c)
}

// directCall is a call with its answer, in one piece.
type directCall struct {
	call
	exchange
}

// answerDirect runs a call and answers it, unless the session's end has done so before.
func (e *Endpoint) answerDirect(ctx context.Context, s *session, k *call) {
	result, err := e.resultOf(ctx, k)
	s.answer(k.number, func(id json.RawMessage) []byte {
		if err != nil {
			known := rpcErrorOf(err)
			return errorBody(id, known.Code, known.Message, known.Data)
		}
		return resultBody(id, result...)
	})
}

// resultOf runs a call; its result comes in parts, so that what the namespace keeps marshalled is
// copied once only. A panic fails the call alone (hardening row 4).
func (e *Endpoint) resultOf(ctx context.Context, k *call) (result [][]byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("A call panicked", "method", k.method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result, err = nil, internal()
		}
	}()
	if k.method == "tools/list" {
		if list, whole := e.wholeList(k); whole {
			return [][]byte{[]byte(listOpen), list, {'}'}}, nil
		}
	}
	raw, err := e.method(k.method)(ctx, k)
	return [][]byte{raw}, err
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
