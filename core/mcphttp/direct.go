package mcphttp

import (
	"encoding/json"
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
	d := newDirect(m, caller)
	if f := e.begin(s, []*call{&d.call}); f != nil {
		return f.send(c)
	}
	t := e.launch(&d.life, &d.call)
	if d.lands(t) {
		e.answerDirect(s, &d.call, t)
	} else {
		go e.answerDirect(s, &d.call, t)
	}
	return d.send(c)
}

// directCall is a call with all that belongs to it, in one piece.
type directCall struct {
	call
	exchange
	frames queue
	first  [1]frame // most calls say nothing but their answer
	life   lifetime
}

func newDirect(m message, caller core.Caller) *directCall {
	d := &directCall{call: call{message: m, caller: caller}, frames: queue{wake: make(chan struct{}, 1)}}
	d.queue, d.exchange.life, d.out, d.life.call = &d.frames, &d.life, &d.exchange, &d.call
	d.frames.events = d.first[:0]
	d.waiting.Store(1)
	return d
}

// answerDirect ends a call and answers it, unless the session's end has done so before.
func (e *Endpoint) answerDirect(s *session, k *call, t task) {
	result, err := e.land(k, t)
	s.answer(k.number, func(id json.RawMessage) []byte {
		if err != nil {
			known := rpcErrorOf(err)
			return errorBody(id, known.Code, known.Message, known.Data)
		}
		return resultBody(id, result...)
	})
}

// cancelDirect ends a call at its client's wish. It is false for a call that the SDK runs.
func (s *session) cancelDirect(n int64) bool {
	k := s.call(n)
	if k == nil || k.out.life == nil {
		return false
	}
	k.out.life.end()
	k.out.signal()
	return true
}
