package chat

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// asker is asking for one call of a tool.
type asker struct {
	*asking
	call, server, tool string
}

// Ask implements apps.Asker.
func (a *asker) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if method != methodElicit {
		return nil, refuse(methodNotFound, method+" is nothing that a chat answers")
	}
	asked, err := readElicitation(params)
	if err != nil {
		return nil, err
	}
	return a.put(ctx, asked).result()
}

// put puts a question to the person and returns what came of it. One that cannot be put is declined.
func (a *asker) put(ctx context.Context, asked elicitation) Reply {
	one := &question{reply: make(chan Reply, 1), Question: core.Question{
		ID: newID("elic_"), Workspace: a.caller.Workspace.ID, Owner: a.caller.User.ID, Schema: asked.Schema, Until: time.Now().Add(a.e.patience()),
	}}
	switch {
	case a.over.Err() != nil || ctx.Err() != nil:
		return Reply{Action: Cancel}
	case a.emit == nil:
		return Reply{Action: Decline}
	case !a.enter(one.ID):
		a.e.log.Warn("An app asks too much in one run: what it asks is declined", "server", a.server, "run", a.runID)
		return Reply{Action: Decline}
	}
	defer a.leave()
	if err := a.e.keepQuestion(ctx, one); err != nil {
		a.e.log.Error("A question of an app could not be kept, and is declined", "server", a.server, "error", err)
		return Reply{Action: Decline}
	}
	a.emit(Event{EventElicitationRequest, elicitationRequest{
		RunID: a.runID, ID: one.ID, ToolCallID: a.call, Server: a.server, Tool: a.tool, Mode: asked.Mode, Message: asked.Message,
		Schema: asked.Schema, URL: asked.URL, ElicitationID: asked.ElicitationID, ExpiresAt: core.Timestamp(one.Until),
	}})
	reply, reason := a.wait(ctx, one)
	if a.over.Err() == nil {
		a.emit(Event{EventElicitationAnswer, elicitationAnswer{RunID: a.runID, ID: one.ID, Action: reply.Action, Reason: reason}})
	}
	return reply
}

// The reasons of an answer.
const (
	byPerson  = "person"
	byTimeout = "timeout"
	byApp     = "withdrawn" // the app took the question back, or its call ended
)

// wait is the answer to a question, and whose it is. ctx ends when the app takes the question back,
// and when the call ends that it is about, as it does when the person leaves.
func (a *asker) wait(ctx context.Context, one *question) (Reply, string) {
	limit, look := time.NewTimer(time.Until(one.Until)), time.NewTicker(lookForReply)
	defer limit.Stop()
	defer look.Stop()
	for {
		select {
		case reply := <-one.reply:
			return reply, byPerson
		case <-a.over.Done():
			return a.giveUp(ctx, one, Cancel, byApp)
		case <-ctx.Done():
			return a.giveUp(ctx, one, Cancel, byApp)
		case <-limit.C:
			return a.giveUp(ctx, one, Decline, byTimeout)
		case <-look.C:
			if reply, ok := a.e.replyElsewhere(ctx, one); ok {
				return reply, byPerson
			}
		}
	}
}

// giveUp answers in the person's place, unless they did at the last moment.
func (a *asker) giveUp(ctx context.Context, one *question, action, reason string) (Reply, string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
	defer cancel()
	reply := Reply{Action: action}
	if core.CodeOf(a.e.settle(ctx, one.ID, one, reply)) != core.CodeAlreadyAnswered {
		return reply, reason
	}
	select {
	case reply = <-one.reply:
		return reply, byPerson
	default:
	}
	if said, ok := a.e.replyElsewhere(ctx, one); ok {
		return said, byPerson
	}
	return reply, reason
}
