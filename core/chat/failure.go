package chat

import (
	"errors"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
)

// told is a failure as the event error has it, which knows five codes (contract part 4).
func told(e *core.Error) failed {
	switch e.Code {
	case core.CodeProviderAuth, core.CodeProviderOverloaded, core.CodeProviderError, core.CodeRateLimited:
		return failed{Error: e.Code, Message: e.Message}
	default:
		return failed{Error: core.CodeEngineError, Message: e.Message}
	}
}

// failure words what ended a run for the person who talks. What the provider said is for the log,
// but for what concerns the conversation itself.
func (e *Engine) failure(c chosen, err error) *core.Error {
	if known, ok := errors.AsType[*core.Error](err); ok {
		return known
	}
	p, ok := errors.AsType[*model.Error](err)
	if !ok {
		e.log.Error("A chat run ended by an error of the server", "model", c.full, "error", err)
		return core.Wrap(core.CodeEngineError, err, "something went wrong inside the server while it ran the chat; its log has the reason")
	}
	e.log.Warn("A model did not answer", "model", c.full, "status", p.Status, "error", err)
	switch p.Failure {
	case model.Auth:
		return core.Wrap(core.CodeProviderAuth, err, "the provider of "+c.full+" does not accept the server's key, or the key may not use this model")
	case model.RateLimited:
		return core.Wrap(core.CodeRateLimited, err, "the provider of "+c.full+" limits how much it is asked; come back later").WithRetryAfter(p.RetryAfter)
	case model.Overloaded:
		return core.Wrap(core.CodeProviderOverloaded, err, "the provider of "+c.full+" cannot answer at the moment; come back later").WithRetryAfter(p.RetryAfter)
	case model.TooLong:
		return core.Wrap(core.CodeProviderError, err, "the conversation is too long for "+c.full+": go on in a new one, or fork this one at an earlier message")
	case model.Broken:
		return core.Wrap(core.CodeProviderError, err, "the connection to the provider of "+c.full+" broke in the middle of its answer; what it had said is kept")
	default:
		return core.Wrap(core.CodeProviderError, err, "the provider of "+c.full+" did not take the request; the server's log has its reason")
	}
}
