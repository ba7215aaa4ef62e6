package chat

import (
	"context"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/elicit"
	"github.com/ropewalk/ropewalk/core/chat/skill"
)

const (
	titleLimit    = 200 // characters of a title set by a person
	recent        = 5   // conversations that Recent returns
	interruptTime = 5 * time.Second
)

// Conversations lists the caller's own conversations.
func (e *Engine) Conversations(ctx context.Context, c core.Caller, q core.ConversationQuery) (core.ConversationPage, error) {
	return e.store.Conversations(ctx, c.Workspace.ID, c.User.ID, q)
}

// Recent returns the first conversations that a client shows.
func (e *Engine) Recent(ctx context.Context, c core.Caller) ([]core.Conversation, error) {
	page, err := e.Conversations(ctx, c, core.ConversationQuery{Limit: recent})
	return page.Conversations, err
}

// Edit changes the title, the metadata and the disabled apps. The error is core.CodeBadRequest if nothing is given or a
// value is invalid.
func (e *Engine) Edit(ctx context.Context, c core.Caller, id string, p core.ConversationPatch) (core.Conversation, error) {
	if len(p.Metadata) == 0 || string(p.Metadata) == "null" {
		p.Metadata = nil
	}
	if p.Title == nil && p.Metadata == nil && p.DisabledApps == nil {
		return core.Conversation{}, core.Errorf(core.CodeBadRequest, "title, metadata or disabledApps is required")
	}
	if !isObject(p.Metadata) {
		return core.Conversation{}, core.Errorf(core.CodeBadRequest, "metadata must be an object")
	}
	if err := checkDisabledApps(p.DisabledApps); err != nil {
		return core.Conversation{}, err
	}
	if p.Title != nil {
		trimmed := strings.TrimSpace(*p.Title)
		if trimmed == "" || len([]rune(trimmed)) > titleLimit {
			return core.Conversation{}, core.Errorf(core.CodeBadRequest, "title must have 1 to %d characters", titleLimit)
		}
		if err := core.CheckText("title", trimmed); err != nil {
			return core.Conversation{}, err
		}
		p.Title = &trimmed
	}
	ref := c.Conversation(id)
	changed, err := e.store.UpdateConversation(ctx, ref, p)
	if err == nil && p.Title != nil {
		e.publishTitle(ref, changed.Title)
	}
	return changed, err
}

// Fork copies the first atMessage messages of a conversation into a new one; nil copies all of them.
func (e *Engine) Fork(ctx context.Context, c core.Caller, id string, atMessage *int) (core.Conversation, error) {
	if atMessage == nil {
		return e.store.ForkConversation(ctx, c.Conversation(id), -1)
	}
	if *atMessage < 0 {
		return core.Conversation{}, core.Errorf(core.CodeBadRequest, "atMessage, the number of messages to copy, must be 0 or more")
	}
	return e.store.ForkConversation(ctx, c.Conversation(id), *atMessage)
}

// Delete deletes a conversation. If a run is active in it, that run is ended first.
func (e *Engine) Delete(ctx context.Context, c core.Caller, id string) error {
	ref := c.Conversation(id)
	if _, err := e.store.Conversation(ctx, ref); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, interruptTime)
	defer cancel()
	if err := e.claims.Interrupt(wait, ref.ID); err != nil {
		return core.Wrap(core.CodeRunInProgress, err, "the run in this conversation did not end in time; try again")
	}
	if err := e.store.DeleteConversation(ctx, ref); err != nil {
		return err
	}
	e.publish(ref, core.EventConversationDeleted, core.ConversationDeleted{ID: ref.ID})
	e.titles.start(func() { e.tools.EndSession(elicit.SessionID(ref.ID)) }) // apps may be slow to stop
	return nil
}

// Usage reports model usage in the caller's workspace: everyone's for workspace admins, and only their own for
// other callers.
func (e *Engine) Usage(ctx context.Context, c core.Caller, q core.UsageQuery) (core.UsageReport, error) {
	q.Workspace, q.User = c.Workspace.ID, c.User.ID
	if c.Workspace.Role.Admin() {
		q.User = ""
	}
	return e.store.Usage(ctx, q)
}

// Skills lists the skills of the caller's workspace.
func (e *Engine) Skills(c core.Caller) []skill.Skill { return e.skills.Skills(c.Workspace.ID) }
