package mcphttp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/event"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
)

// yard is one app, demo, in memory: what it offers, and what it says by itself.
type yard struct {
	mu         sync.Mutex
	offer      *core.Offer
	told       map[int]func(apps.Notification)
	next       int
	subscribed map[string]int
	level      string
	roots      int
	ended      []string
	answered   func(string) // called with what a client said to a question
	heard      func(rpc.Notification)
}

func newYard() *yard {
	return &yard{told: map[int]func(apps.Notification){}, subscribed: map[string]int{}, offer: &core.Offer{
		Prompts:   []core.Prompt{{Server: "demo", Name: "greet", Raw: json.RawMessage(`{"name":"greet","x-unknown":12345678901234567890}`)}},
		Resources: []core.Resource{{Server: "demo", URI: "demo://a", Raw: json.RawMessage(`{"uri":"demo://a","name":"a","x":1.50}`)}},
		Templates: []core.ResourceTemplate{{Server: "demo", Template: "demo://t/{id}", Raw: json.RawMessage(`{"uriTemplate":"demo://t/{id}","name":"t"}`)}},
	}}
}

func (y *yard) hall() *tools.Namespace {
	return tools.New(tools.Options{Apps: y, Events: event.New(hclog.NewNullLogger()), Features: config.Features{}, Logger: hclog.NewNullLogger()})
}

func (y *yard) Offer(string) *core.Offer { return y.offer }

func (*yard) Arrives(context.Context, string, string) (bool, error) { return false, nil }

// Send begins nothing: every call is Call's.
func (*yard) Send(context.Context, string, string, apps.Call, chan struct{}) (*apps.Pending, error) {
	return nil, nil
}

// Call answers with what was asked, so that a test sees what reached the app. The URI demo://ask
// asks the client first, and demo://none is not there.
func (y *yard) Call(ctx context.Context, workspace, server string, c apps.Call) (json.RawMessage, error) {
	var said struct{ URI string }
	_ = json.Unmarshal(c.Params, &said)
	switch {
	case said.URI == "demo://none":
		return nil, &rpc.Error{Code: -32002, Message: "Resource not found", Data: json.RawMessage(`{"uri":"demo://none"}`)}
	case said.URI == "demo://ask" && c.Asker != nil:
		result, err := c.Asker.Ask(ctx, "elicitation/create", json.RawMessage(`{"message":"?","x":1.50}`))
		if err != nil {
			return nil, err
		}
		if y.answered != nil {
			y.answered(string(result))
		}
		return json.RawMessage(fmt.Sprintf(`{"contents":[{"uri":"demo://ask","answer":%s}]}`, result)), nil
	case said.URI == "demo://ask/7": // with a progress token
		return c.Asker.(apps.ProgressAsker).AskWithProgress(ctx, "elicitation/create", json.RawMessage(`{"message":"?","x":1.50,"_meta":{"progressToken":7,"y":1.0}}`), y.heard)
	case said.URI == "demo://input":
		return json.RawMessage(`{"resultType":"input_required","inputRequests":{}}`), nil
	}
	scope := ""
	if c.Method == "resources/read" {
		scope = `,"cacheScope":"public"`
	}
	return json.RawMessage(fmt.Sprintf(`{"workspace":%q,"server":%q,"method":%q,"params":%s%s}`, workspace, server, c.Method, c.Params, scope)), nil
}

func (y *yard) Watch(string, func(core.Kind)) func() { return func() {} } // the hall's own tells

func (y *yard) Listen(_ string, told func(apps.Notification)) func() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.next++
	id := y.next
	y.told[id] = told
	return func() {
		y.mu.Lock()
		defer y.mu.Unlock()
		delete(y.told, id)
	}
}

// say has the app say something by itself.
func (y *yard) say(method, params string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, told := range y.told {
		told(apps.Notification{Server: "demo", Notification: rpc.Notification{Method: method, Params: json.RawMessage(params)}})
	}
}

func (y *yard) Subscribe(_ context.Context, _, _, _, uri string) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.subscribed[uri]++
	return nil
}

func (y *yard) Unsubscribe(_ context.Context, _, _, _, uri string) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.subscribed[uri]--
	return nil
}

func (y *yard) subscriptions(uri string) int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.subscribed[uri]
}

func (y *yard) SetLogLevel(_ context.Context, _, level string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.level = level
}

func (y *yard) RootsChanged(context.Context, string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.roots++
}

func (y *yard) EndSession(session string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.ended = append(y.ended, session)
}
