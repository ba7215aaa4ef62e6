package chat

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/ropewalk/ropewalk/core"
)

// maxRestored is the maximum number of messages in a restored conversation.
const maxRestored = 10_000

// Conversation returns a conversation. The error is core.CodeNotFound if it does not exist or is not the caller's.
func (e *Engine) Conversation(ctx context.Context, c core.Caller, id string) (core.Conversation, error) {
	return e.store.Conversation(ctx, c.Conversation(id))
}

// Restore creates a new conversation for the caller from exported messages. The error is core.CodeBadRequest, and names
// the invalid field. Usage is not restored, because the model calls belong to the original.
func (e *Engine) Restore(ctx context.Context, c core.Caller, title *string, metadata json.RawMessage, messages []core.Message) (core.Conversation, error) {
	made := core.Conversation{Workspace: c.Workspace.ID, Owner: c.User.ID}
	if title != nil {
		made.Title = strings.TrimSpace(core.PlainText(*title)) // an older server may have exported a title that is now rejected
	}
	if len([]rune(made.Title)) > titleLimit {
		return core.Conversation{}, core.Errorf(core.CodeBadRequest, "conversation.title must have at most %d characters", titleLimit)
	}
	if len(metadata) > 0 && string(metadata) != "null" {
		if !isObject(metadata) {
			return core.Conversation{}, core.Errorf(core.CodeBadRequest, "conversation.metadata must be an object")
		}
		made.Metadata = metadata
	}
	if err := checkRestored(messages); err != nil {
		return core.Conversation{}, err
	}
	restored, err := e.store.CreateConversation(ctx, made)
	if err != nil || len(messages) == 0 {
		return restored, err
	}
	return e.store.AppendMessages(ctx, c.Conversation(restored.ID), messages)
}

func checkRestored(messages []core.Message) error {
	if len(messages) > maxRestored {
		return core.Errorf(core.CodeBadRequest, "messages must have at most %d entries", maxRestored)
	}
	for i, m := range messages {
		if m.Role != "user" && m.Role != "assistant" {
			return core.Errorf(core.CodeBadRequest, "messages[%d].role must be user or assistant", i)
		}
		if len(m.Metadata) > 0 && !isObject(m.Metadata) {
			return core.Errorf(core.CodeBadRequest, "messages[%d].metadata must be an object", i)
		}
	}
	return nil
}
