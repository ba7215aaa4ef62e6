package chat

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// Reply is what a person says to a question of an app.
type Reply struct {
	Action  string          `json:"action"`  // accept, decline or cancel
	Content json.RawMessage `json:"content"` // what was filled into a form that is accepted
}

// The actions (MCP 2025-11-25, client/elicitation).
const (
	Accept  = "accept"
	Decline = "decline"
	Cancel  = "cancel"
)

// patience is how long a question waits for its person.
const patience = 5 * time.Minute

// question is one that waits for its person, or did: it is known until its run is over.
type question struct {
	core.Question
	reply   chan Reply // holds one
	settled bool       // guarded by the mutex of questions
}

// questions are those of the runs of this server, by id.
type questions struct {
	mu    sync.Mutex
	known map[string]*question
}

func newQuestions() *questions { return &questions{known: map[string]*question{}} }

func (q *questions) add(one *question) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.known[one.ID] = one
}

func (q *questions) find(id string) *question {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.known[id]
}

func (q *questions) forget(ids []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range ids {
		delete(q.known, id)
	}
}

// settle gives a question its reply, if it is the first.
func (q *questions) settle(one *question, r Reply) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if one.settled {
		return core.Errorf(core.CodeAlreadyAnswered, "the question has been answered, or its time is over")
	}
	one.settled = true
	one.reply <- r
	return nil
}

// Reply answers a question that an app asks in a run of the caller's own. core.CodeBadRequest for an
// action that is none or content that is no object; core.CodeNotFound when there is no such question,
// or it is another's, or its run is over; core.CodeAlreadyAnswered when it has its answer;
// core.CodeInvalidInput, with the violations in its details, when the content does not fit what was
// asked for. Content counts only where a form is accepted.
func (e *Engine) Reply(ctx context.Context, c core.Caller, id string, r Reply) error {
	if r.Action != Accept && r.Action != Decline && r.Action != Cancel {
		return core.Errorf(core.CodeBadRequest, "action must be %s, %s or %s", Accept, Decline, Cancel)
	}
	here := e.questions.find(id)
	asked, err := e.asked(ctx, here, id)
	if err != nil {
		return err
	}
	if asked.Workspace != c.Workspace.ID || asked.Owner != c.User.ID {
		return unknownQuestion()
	}
	if r, err = e.fitting(asked, r); err != nil {
		return err
	}
	return e.settle(ctx, id, here, r)
}

// fitting is a reply without what does not count, if it fits the question.
func (e *Engine) fitting(asked core.Question, r Reply) (Reply, error) {
	if r.Action != Accept || len(asked.Schema) == 0 {
		r.Content = nil
		return r, nil
	}
	if len(r.Content) == 0 || string(r.Content) == "null" {
		r.Content = json.RawMessage(`{}`)
	}
	if !isObject(r.Content) {
		return r, core.Errorf(core.CodeBadRequest, "content must be an object with the fields of the form")
	}
	return r, e.tools.CheckForm(asked.Schema, r.Content)
}

func unknownQuestion() error {
	return core.Errorf(core.CodeNotFound, "there is no such question, or the run that it was asked in is over")
}

// result is the reply as an ElicitResult.
func (r Reply) result() (json.RawMessage, error) {
	return json.Marshal(struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content,omitempty"`
	}{r.Action, r.Content})
}
