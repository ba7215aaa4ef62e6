package elicit

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
)

// Reply is a person's reply to an app's question.
type Reply struct {
	Action  string          `json:"action"`  // accept, decline or cancel
	Content json.RawMessage `json:"content"` // the fields of an accepted form
}

// The actions (MCP 2025-11-25, client/elicitation).
const (
	Accept  = "accept"
	Decline = "decline"
	Cancel  = "cancel"
)

// Reply answers a question that an app asked in one of the caller's runs. Content only matters for an accepted form.
//
// The error is core.CodeBadRequest for an unknown action or for content that is not an object, and core.CodeNotFound
// if the question does not exist, belongs to another person, or its run is over. It is core.CodeAlreadyAnswered if
// the question already has an answer, and core.CodeInvalidInput, with the violations in its details, if the content
// does not match the form.
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

// normalize drops content that does not matter, and checks any other content against the form.
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
	return core.Errorf(core.CodeNotFound, "there is no such question, or its run is over")
}

// result returns the reply as an MCP ElicitResult.
func (r Reply) result() (json.RawMessage, error) {
	return json.Marshal(struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content,omitempty"`
	}{r.Action, r.Content})
}
