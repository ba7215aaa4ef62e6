package mcphttp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/event"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/internal/testkit/fakeapps"
)

// fakeApp is an in-memory app named demo.
type fakeApp struct {
	fakeapps.Apps
	answered func(string) // called with a client's answer to a question
	heard    func(rpc.Notification)
}

func newFakeApp() *fakeApp {
	f := &fakeApp{}
	f.SetOffer("", &core.Offer{
		Prompts:   []core.Prompt{{Server: "demo", Name: "greet", Raw: json.RawMessage(`{"name":"greet","x-unknown":12345678901234567890}`)}},
		Resources: []core.Resource{{Server: "demo", URI: "demo://a", Raw: json.RawMessage(`{"uri":"demo://a","name":"a","x":1.50}`)}},
		Templates: []core.ResourceTemplate{{Server: "demo", Template: "demo://t/{id}", Raw: json.RawMessage(`{"uriTemplate":"demo://t/{id}","name":"t"}`)}},
	})
	f.Answer(f.answer)
	return f
}

func (f *fakeApp) namespace() *tools.Namespace {
	return tools.New(tools.Options{Apps: f, Events: event.New(hclog.NewNullLogger()), Features: config.Features{}, Logger: hclog.NewNullLogger()})
}

// answer echoes the request, so that a test can see what reached the app. The URI demo://ask first asks the client a
// question; demo://none does not exist.
func (f *fakeApp) answer(ctx context.Context, c fakeapps.Call) (json.RawMessage, error) {
	var params struct{ URI string }
	_ = json.Unmarshal(c.Params, &params)
	switch {
	case params.URI == "demo://none":
		return nil, &rpc.Error{Code: -32002, Message: "Resource not found", Data: json.RawMessage(`{"uri":"demo://none"}`)}
	case params.URI == "demo://ask" && c.Asker != nil:
		result, err := c.Asker.Ask(ctx, rpc.Question{Method: "elicitation/create", Params: json.RawMessage(`{"message":"?","x":1.50}`)})
		if err != nil {
			return nil, err
		}
		if f.answered != nil {
			f.answered(string(result))
		}
		return json.RawMessage(fmt.Sprintf(`{"contents":[{"uri":"demo://ask","answer":%s}]}`, result)), nil
	case params.URI == "demo://ask/7": // the question has a progress token
		return c.Asker.Ask(ctx, rpc.Question{Method: "elicitation/create", Params: json.RawMessage(`{"message":"?","x":1.50,"_meta":{"progressToken":7,"y":1.0}}`), Notify: f.heard})
	case params.URI == "demo://input":
		return json.RawMessage(`{"resultType":"input_required","inputRequests":{}}`), nil
	case strings.HasPrefix(params.URI, "demo://ttl"):
		return json.RawMessage(`{"contents":[],"ttlMs":` + strings.TrimPrefix(params.URI, "demo://ttl") + `}`), nil
	}
	scope := ""
	if c.Method == "resources/read" {
		scope = `,"cacheScope":"public"`
	}
	return json.RawMessage(fmt.Sprintf(`{"workspace":%q,"server":%q,"method":%q,"params":%s%s}`, c.Workspace, c.Server, c.Method, c.Params, scope)), nil
}

// notify makes the app send a notification.
func (f *fakeApp) notify(method, params string) {
	f.Notify("", apps.Notification{Server: "demo", Notification: rpc.Notification{Method: method, Params: json.RawMessage(params)}})
}
