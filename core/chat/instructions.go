package chat

import (
	"context"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/core"
)

// maxInstructions is the maximum length of a workspace's instructions, in characters. They are part of every request
// to a model.
const maxInstructions = 20_000

// Instructions returns the instructions of the caller's workspace; "" if there are none.
func (e *Engine) Instructions(ctx context.Context, c core.Caller) (string, error) {
	return e.store.WorkspaceInstructions(ctx, c.Workspace.ID)
}

// SetInstructions replaces the instructions of the caller's workspace, which are part of the system prompt of every
// run that starts there. An empty text removes them.
func (e *Engine) SetInstructions(ctx context.Context, c core.Caller, text string) error {
	if n := utf8.RuneCountInString(text); n > maxInstructions {
		return core.Errorf(core.CodeBadRequest, "instructions has %d characters; it may have %d", n, maxInstructions)
	}
	return e.store.SetWorkspaceInstructions(ctx, c.Workspace.ID, text)
}
