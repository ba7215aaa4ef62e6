package elicit

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
)

// Reply is what a person answers to a question of an app.
type Reply struct {
	Action  string          `json:"action"`  // accept, decline or cancel
	Content json.RawMessage `json:"content"` // the fields of a form that is accepted
}

// The actions (MCP 2025-11-25, client/elicitation).
const (
	Accept  = "accept"
	Decline = "decline"
	Cancel  = "cancel"
)

// Reply answers a question that an app asks in a run of the caller's own. core.CodeBadRequest for an
// unknown action or content that is not an object; core.CodeNotFound when there is no such question, or
// it is another person's, or its run is over; core.CodeAlreadyAnswered when it has its answer;
// core.CodeInvalidInput, with the violations in its details, when the content does not fit the form.
// Content counts only where a form is accepted.
func (q *Questions) Reply(ctx context.Context, c core.Caller, id string, r Reply) error {
	if r.Action != Accept && r.Action != Decline && r.Action != Cancel {
		return core.Errorf(core.CodeBadRequest, "action must be %s, %s or %s", Accept, Decline, Cancel)
	}
	local := q.local(id)
	found, err := q.find(ctx, local, id)
	if err != nil {
		return err
	}
	if found.Workspace != c.Workspace.ID || found.Owner != c.User.ID {
		return unknownQuestion()
	}
	if r, err = q.normalize(found, r); err != nil {
		return err
	}
	return q.settle(ctx, id, local, r)
}

// normalize drops content that does not count, and checks the rest against the form.
func (q *Questions) normalize(of core.Question, r Reply) (Reply, error) {
	if r.Action != Accept || len(of.Schema) == 0 {
		r.Content = nil
		return r, nil
	}
	if len(r.Content) == 0 || string(r.Content) == "null" {
		r.Content = json.RawMessage(`{}`)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(r.Content, &object) != nil {
		return r, core.Errorf(core.CodeBadRequest, "content must be an object with the fields of the form")
	}
	return r, q.tools.CheckForm(of.Schema, r.Content)
}

func unknownQuestion() error {
	return core.Errorf(core.CodeNotFound, "no such question, or the run that asked it is over")
}

// result is the reply as an ElicitResult.
func (r Reply) result() (json.RawMessage, error) {
	return json.Marshal(struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content,omitempty"`
	}{r.Action, r.Content})
}
