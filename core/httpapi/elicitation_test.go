package httpapi

import (
	"context"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/elicit"
	"github.com/ropewalk/ropewalk/core/config"
)

// answered is a chat with one pending question. It records the reply.
type answered struct {
	Chat
	by    core.Caller
	id    string
	reply elicit.Reply
	fails error
}

func (a *answered) Reply(_ context.Context, c core.Caller, id string, r elicit.Reply) error {
	a.by, a.id, a.reply = c, id, r
	return a.fails
}

func TestTheReplyToAnAppsQuestionIsPassedOn(t *testing.T) {
	a := &answered{Chat: newChat(t, newFakeConversations(), &fakeTools{}, config.Models{})}
	h := open(t, newAccess(), func(o *Options) { o.Chat = a })
	router, err := gorillamux.NewRouter(document(t, h))
	if err != nil {
		t.Fatal(err)
	}
	const path = "/v1/chat/elicitations/elic_0123456789abcdef"
	violations := map[string]any{"errors": []map[string]string{{"path": "/n", "message": "got string, want number"}}}
	for _, c := range []struct {
		what   string
		body   string
		fails  error
		status int
		want   string
	}{
		{"accepted", `{"action":"accept","content":{"n":1.50},"more":1}`, nil, 200, `{"id":"elic_0123456789abcdef","action":"accept"}`},
		{"declined", `{"action":"decline"}`, nil, 200, `"action":"decline"`},
		{"of the wrong type", `{"action":1}`, nil, 400, "action must be a string"},
		{"empty", ``, nil, 400, "empty"},
		{"to an unknown question", `{"action":"cancel"}`, core.Errorf(core.CodeNotFound, "none"), 404, `"not_found"`},
		{"already answered", `{"action":"cancel"}`, core.Errorf(core.CodeAlreadyAnswered, "late"), 409, `"already_answered"`},
		{"not matching the schema", `{"action":"accept"}`, core.Errorf(core.CodeInvalidInput, "m").WithDetails(violations), 400, `"path":"/n"`},
	} {
		t.Run(c.what, func(t *testing.T) {
			a.fails, a.reply = c.fails, elicit.Reply{}
			asked := call{method: "POST", path: path, body: c.body}
			r := h.do(t, asked)
			if r.StatusCode != c.status || !strings.Contains(r.body, c.want) {
				t.Fatalf("%d %s", r.StatusCode, r.body)
			}
			checkDocumented(t, router, asked, r)
			if c.what == "accepted" && (a.id != "elic_0123456789abcdef" || string(a.reply.Content) != `{"n":1.50}` || a.by.User.ID != core.Owner().User.ID || a.by.Workspace.ID != core.DefaultWorkspaceID) {
				t.Errorf("%+v answered %s with %+v", a.by, a.id, a.reply)
			}
		})
	}
	if r := h.do(t, call{method: "POST", path: path, body: `{"action":"accept"}`, header: map[string]string{"Authorization": anonymous}}); r.StatusCode != 401 || r.body != "" {
		t.Errorf("without a login: %d %s", r.StatusCode, r.body)
	}
}
