package chat

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// Where several servers share the state, a person's reply may reach another server than the one whose
// run asks. So questions are kept in the state, which decides whose reply is the first, and the server
// that asks looks for it every so often.

// lookForReply is how often.
const lookForReply = 250 * time.Millisecond

// keepQuestion makes a question known to those who may answer it.
func (e *Engine) keepQuestion(ctx context.Context, one *question) error {
	if e.store.Shared() {
		if err := e.store.PutQuestion(ctx, one.Question); err != nil {
			return err
		}
	}
	e.questions.add(one)
	return nil
}

// asked is a question that waits here, or in another server.
func (e *Engine) asked(ctx context.Context, here *question, id string) (core.Question, error) {
	switch {
	case here != nil:
		return here.Question, nil
	case !e.store.Shared():
		return core.Question{}, unknownQuestion()
	}
	asked, err := e.store.Question(ctx, id)
	if core.CodeOf(err) == core.CodeNotFound {
		err = unknownQuestion()
	}
	return asked, err
}

// settle gives a question its reply, if it is the first. here is nil when another server asks it.
func (e *Engine) settle(ctx context.Context, id string, here *question, r Reply) error {
	if !e.store.Shared() {
		return e.questions.settle(here, r)
	}
	said, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err = e.store.SettleQuestion(ctx, id, said); err == nil && here != nil {
		_ = e.questions.settle(here, r) // so that it need not look
	}
	return err
}

// replyElsewhere is the reply that another server got, if there is one.
func (e *Engine) replyElsewhere(ctx context.Context, one *question) (r Reply, ok bool) {
	if !e.store.Shared() {
		return r, false
	}
	said, err := e.store.ReplyTo(ctx, one.ID)
	if err != nil || len(said) == 0 { // not yet, or the state cannot be asked at the moment
		return r, false
	}
	return r, json.Unmarshal(said, &r) == nil
}
