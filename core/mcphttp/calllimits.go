package mcphttp

import (
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/limits"
)

// acquireCalls counts the tool calls of a POST against the share of their user (limits.calls and
// limits.callsPerSecond), which the HTTP API uses too. When one of them is beyond it, none is made.
func (e *Endpoint) acquireCalls(calls []*call) *fault {
	for _, k := range calls {
		if k.Method != "tools/call" {
			continue
		}
		err := e.o.Limits.AllowCall(k.caller.User.ID)
		if err == nil {
			k.release, err = e.o.Limits.Acquire(limits.Calls, k.caller.User.ID)
		}
		if err != nil {
			releaseCalls(calls)
			return rateLimited(err).of(k.Call.ID)
		}
	}
	return nil
}

// releaseCalls gives back what acquireCalls counted.
func releaseCalls(calls []*call) {
	for _, k := range calls {
		if k.release != nil {
			k.release()
			k.release = nil
		}
	}
}

// rateLimited is the answer to a call beyond the share of its user: HTTP 429 with Retry-After.
func rateLimited(err error) *fault {
	f := retryLater(fiber.StatusTooManyRequests, err.Error(), 0)
	if known, ok := errors.AsType[*core.Error](err); ok {
		f.message, f.retryAfter = known.Message, known.RetryAfter
		f.data = map[string]any{"error": known.Code}
	}
	return f
}
