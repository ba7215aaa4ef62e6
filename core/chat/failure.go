package chat

import (
	"errors"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
)

// failedEvent returns the data of EventError. Codes that the event does not define become core.CodeEngineError.
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

// failure converts the error that ended a run into one for the person who is chatting. Only admins of the organization see the
// provider's own words, and why it was unreachable.
func (e *Engine) failure(c core.Caller, s selected, err error) *core.Error {
	if known, ok := errors.AsType[*core.Error](err); ok {
		return known
	}
	p, ok := errors.AsType[*model.Error](err)
	if !ok {
		e.log.Error("chat run failed", "model", s.full, "error", err)
		return core.Wrap(core.CodeEngineError, err, "the server failed to run the chat; the reason is in its log")
	}
	e.log.Warn("model call failed", "model", s.full, "status", p.Status, "error", err) // the error names the host
	code, text := sentenceFor(p, s.full)
	failed := core.Wrap(code, err, text+wordsFor(c, p))
	switch p.Failure {
	case model.RateLimited, model.Overloaded, model.ServerError:
		return failed.WithRetryAfter(p.RetryAfter)
	default:
		return failed
	}
}

// sentenceFor explains the failure of a call to a model.
func sentenceFor(p *model.Error, full string) (core.Code, string) {
	provider := "the provider of " + full
	switch p.Failure {
	case model.Auth:
		return core.CodeProviderAuth, provider + " does not accept the server's key (" + KeySetting(full) + "), or the key may not use this model"
	case model.RateLimited:
		return core.CodeRateLimited, provider + " is limiting the number of requests; try again later"
	case model.Overloaded:
		return core.CodeProviderOverloaded, provider + " is overloaded; try again later"
	case model.ServerError:
		return core.CodeProviderError, provider + " reported an internal error; try again later"
	case model.TooLong:
		return core.CodeProviderError, "the conversation is too long for " + full + "; continue in a new one, or fork this one at an earlier message"
	case model.Unreachable:
		return core.CodeProviderError, provider + " cannot be reached"
	case model.Broken:
		return core.CodeProviderError, "the connection to " + provider + " broke in the middle of its answer; the part that arrived is kept"
	default:
		return core.CodeProviderError, provider + " did not accept the request"
	}
}

// wordsFor returns the rest of the sentence: the reason if c is an admin, and otherwise where an admin can find the
// reason.
func wordsFor(c core.Caller, p *model.Error) string {
	isAdmin, reported := c.User.OrgRole.Admin(), p.Status != 0 || p.Reported
	switch {
	case isAdmin && p.Failure == model.Unreachable:
		return ": " + p.Host + ": " + p.Message
	case isAdmin && reported && p.Message != "":
		return ". It says: " + cleanReason(p.Message)
	case p.Failure == model.Unreachable:
		return " at the moment; the reason is in the server's log"
	case p.Failure == model.Refused:
		return "; the reason is in the server's log"
	default:
		return ""
	}
}
