package chat

import (
	"cmp"
	"fmt"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// withholdsCalls reports whether the tool calls of an answer are dropped because of how the answer ended.
func withholdsCalls(end model.End) bool {
	return end == model.EndFilter || end == model.EndRefusal || end == model.EndWindow
}

// reasonOf returns the stop reason for an answer without tool calls.
func reasonOf(end model.End) StopReason {
	switch end {
	case model.EndLength:
		return TokenBudget
	case model.EndWindow:
		return ContextWindow
	case model.EndFilter:
		return ContentFilter
	case model.EndRefusal:
		return Refusal
	case model.EndNoCalls:
		return NoToolCalls
	case model.EndUnknown:
		return UnknownEnd
	default:
		return Complete
	}
}

// stopMessage explains a reason to the person; "" if there is nothing to explain.
func (l *loop) stopMessage(reason StopReason) string {
	switch reason {
	case MaxIterations:
		return fmt.Sprintf("The run ended after %d turns of the model, which is the limit.", l.limit)
	case TokenBudget:
		if l.cutCall {
			return "The answer reached its length limit in the middle of a tool call. The call was not made."
		}
		return cmp.Or(l.lost, "The answer reached its length limit, or the run reached its token budget.")
	case Cancelled:
		return cmp.Or(l.lost, "The run was cancelled.")
	case NoToolCalls:
		return "The model announced tool calls, but made none."
	case ContentFilter:
		return "The provider's content filter withheld the rest of the answer."
	case Refusal:
		return "The model refused to continue."
	case ContextWindow:
		return "The conversation fills the model's context window. Continue in a new conversation, or fork this one at an earlier message."
	case UnknownEnd:
		return fmt.Sprintf("The provider ended the answer for an unknown reason: %.100q.", l.word)
	case Incomplete:
		return "The server stopped in the middle of the answer. The part that was saved is kept."
	default:
		return ""
	}
}
