package chat

import (
	"errors"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
)

// failedEvent returns the data of EventError. It maps every code that is not one of the five of that event to
// core.CodeEngineError.
func failedEvent(e *core.Error) runFailed {
	switch e.Code {
	case core.CodeProviderAuth, core.CodeProviderOverloaded, core.CodeProviderError, core.CodeRateLimited:
		return runFailed{Error: e.Code, Message: e.Message}
	default:
		return runFailed{Error: core.CodeEngineError, Message: e.Message}
	}
}

// KeySetting returns the name of the setting that holds the API key for a model; model has the form provider:model.
func KeySetting(model string) string {
	provider, _, _ := strings.Cut(model, ":")
	return "models.providers." + provider + ".apiKey"
}

// failure converts the error that ended a run into one for the person who chats. Details from the provider are only
// logged, but admins of the organization also see why a provider was unreachable.
func (e *Engine) failure(c core.Caller, s selected, err error) *core.Error {
	if known, ok := errors.AsType[*core.Error](err); ok {
		return known
	}
	p, ok := errors.AsType[*model.Error](err)
	if !ok {
		e.log.Error("chat run failed", "model", s.full, "error", err)
		return core.Wrap(core.CodeEngineError, err, "the server failed to run the chat; its log has the reason")
	}
	e.log.Warn("model call failed", "model", s.full, "status", p.Status, "error", err) // the error names the host
	provider := "the provider of " + s.full
	switch p.Failure {
	case model.Auth:
		return core.Wrap(core.CodeProviderAuth, err, provider+" does not accept the server's key ("+KeySetting(s.full)+"), or the key may not use this model")
	case model.RateLimited:
		return core.Wrap(core.CodeRateLimited, err, provider+" is limiting the number of requests; try again later").WithRetryAfter(p.RetryAfter)
	case model.Overloaded:
		return core.Wrap(core.CodeProviderOverloaded, err, provider+" is overloaded; try again later").WithRetryAfter(p.RetryAfter)
	case model.ServerError:
		return core.Wrap(core.CodeProviderError, err, provider+" reported an internal error; try again later").WithRetryAfter(p.RetryAfter)
	case model.TooLong:
		return core.Wrap(core.CodeProviderError, err, "the conversation is too long for "+s.full+": continue in a new one, or fork this one at an earlier message")
	case model.Unreachable:
		if c.User.OrgRole.Admin() {
			return core.Wrap(core.CodeProviderError, err, provider+" cannot be reached: "+p.Host+": "+p.Message)
		}
		return core.Wrap(core.CodeProviderError, err, provider+" cannot be reached at the moment; the server's log has the reason")
	case model.Broken:
		return core.Wrap(core.CodeProviderError, err, "the connection to "+provider+" broke in the middle of its answer; the part that arrived is kept")
	default:
		return core.Wrap(core.CodeProviderError, err, provider+" did not accept the request; the server's log has the reason")
	}
}
