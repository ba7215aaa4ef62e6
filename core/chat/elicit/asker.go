package elicit

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
)

// Asker asks the person behind a run on behalf of one tool call.
type Asker struct {
	*Session
	call, server, tool string
}

// Ask implements interact.Asker.
func (a *Asker) Ask(ctx context.Context, q rpc.Question) (json.RawMessage, error) {
	if q.Method != methodCreate {
		return nil, refuse(methodNotFound, "a chat cannot answer "+q.Method)
	}
	r, err := readRequest(q.Params)
	if err != nil {
		return nil, err
	}
	if q.FromServer && a.emit == nil {
		return nil, refuse(methodNotFound, "nobody can see this run's questions")
	}
	if q.FromServer { // the question is the server's, not the app's
		a = &Asker{Session: a.Session, call: a.call, server: tools.SystemServer, tool: a.server + "__" + a.tool}
	}
	return a.ask(ctx, r).result()
}

// ask puts a question to the person and returns the reply. A question that cannot be asked is declined, or cancelled
// if the call or the run has ended.
func (a *Asker) ask(ctx context.Context, r request) Reply {
	one := &question{reply: make(chan Reply, 1), Question: core.Question{
		ID: core.RandomID("elic_"), Workspace: a.caller.Workspace.ID, Owner: a.caller.User.ID, Schema: r.Schema,
		Until: time.Now().Add(time.Duration(a.questions.timeout.Load())),
	}}
	log := a.questions.log
	switch {
	case a.over.Err() != nil || ctx.Err() != nil:
		return Reply{Action: Cancel}
	case a.emit == nil:
		return Reply{Action: Decline}
	case !a.countQuestion(one.ID):
		log.Warn("an app asked too many questions in one run; the question was declined", "server", a.server, "run", a.runID)
		return Reply{Action: Decline}
	}
	defer a.closeQuestion()
	if err := a.questions.add(ctx, one); err != nil {
		log.Error("could not store an app's question; it was declined", "server", a.server, "error", err)
		return Reply{Action: Decline}
	}
	a.emit(EventRequest, requestEvent{
		RunID: a.runID, ID: one.ID, ToolCallID: a.call, Server: a.server, Tool: a.tool, Mode: r.Mode, Message: r.Message,
		Schema: r.Schema, URL: r.URL, ElicitationID: r.ElicitationID, ExpiresAt: core.Timestamp(one.Until),
	})
	reply, reason := a.wait(ctx, one)
	if a.over.Err() == nil {
		a.emit(EventAnswer, answerEvent{RunID: a.runID, ID: one.ID, Action: reply.Action, Reason: reason})
	}
	return reply
}

// The reasons for an answer.
const (
	byPerson  = "person"
	byTimeout = "timeout"
	byApp     = "withdrawn" // the app withdrew the question, or its call ended
)

// wait returns the reply to a question and its reason. ctx ends when the app withdraws the question or its call ends,
// for example because the person leaves.
func (a *Asker) wait(ctx context.Context, one *question) (Reply, string) {
	limit, poll := time.NewTimer(time.Until(one.Until)), time.NewTicker(pollInterval)
	defer limit.Stop()
	defer poll.Stop()
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
		case <-poll.C:
			if reply, ok := a.questions.storedReply(ctx, one); ok {
				return reply, byPerson
			}
		}
	}
}

// giveUp replies in place of the person, unless the person replied at the last moment.
func (a *Asker) giveUp(ctx context.Context, one *question, action, reason string) (Reply, string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	reply := Reply{Action: action}
	if core.CodeOf(a.questions.settle(ctx, one.ID, one, reply)) != core.CodeAlreadyAnswered {
		return reply, reason
	}
	select {
	case reply = <-one.reply:
		return reply, byPerson
	default:
	}
	if stored, ok := a.questions.storedReply(ctx, one); ok {
		return stored, byPerson
	}
	return reply, reason
}

// AcceptsURLs reports whether a call failed because the person must visit URLs first, and whether the person has agreed
// to do so. If both are true, make the call again.
func (a *Asker) AcceptsURLs(ctx context.Context, err error) bool {
	refused, ok := errors.AsType[*rpc.Error](err)
	if !ok || refused.Code != urlRequired {
		return false
	}
	var data struct {
		Elicitations []json.RawMessage `json:"elicitations"`
	}
	if json.Unmarshal(refused.Data, &data) != nil || len(data.Elicitations) == 0 {
		return false
	}
	for _, params := range data.Elicitations {
		r, err := readRequest(params)
		if err != nil || r.Mode != modeURL || a.ask(ctx, r).Action != Accept {
			return false
		}
	}
	return true
}
