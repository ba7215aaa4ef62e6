package chat_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit/fakeapps"
	"github.com/ropewalk/ropewalk/internal/testkit/fakes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(databases.Around(provider.Around(m))) }

// databases is the PostgreSQL server that all tests in this package share.
var databases testenv.Databases

// provider is the model provider that all tests in this package share. They run one after the other.
var provider testenv.SharedModelProvider

// fakeApps holds fake apps in memory. A tool returns what its function in do returns; the key is its bare name.
type fakeApps struct {
	fakeapps.Apps

	mu     sync.Mutex
	listed []core.Tool
	do     map[string]func(ctx context.Context, arguments string, notify func(rpc.Notification)) (string, error)
	asking map[string]func(ctx context.Context, k interact.Asker) (string, error)
}

func newFakeApps() *fakeApps {
	f := &fakeApps{
		do:     map[string]func(context.Context, string, func(rpc.Notification)) (string, error){},
		asking: map[string]func(context.Context, interact.Asker) (string, error){},
	}
	f.Answer(f.call)
	return f
}

func (f *fakeApps) Offer(string, *interact.Client) *core.Offer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &core.Offer{Tools: f.listed}
}

// params are the parameters of a tool call.
type params struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func (f *fakeApps) call(ctx context.Context, c fakeapps.Call) (json.RawMessage, error) {
	var p params
	if err := json.Unmarshal(c.Params, &p); err != nil {
		return nil, err
	}
	f.mu.Lock()
	do, asking := f.do[p.Name], f.asking[p.Name]
	f.mu.Unlock()
	if asking != nil {
		result, err := asking(ctx, c.Asker)
		return json.RawMessage(result), err
	}
	if do == nil {
		return json.RawMessage(`{"content":[{"type":"text","text":"done: ` + p.Name + `"}]}`), nil
	}
	result, err := do(ctx, string(p.Arguments), c.Notify)
	return json.RawMessage(result), err
}

func (f *fakeApps) add(server, name, rest string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	raw := `{"name":"` + name + `","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}` + rest + `}`
	f.listed = append(slices.Clone(f.listed), core.Tool{
		Server: server, Name: name, Raw: json.RawMessage(raw), Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`),
	})
}

// calls returns the calls that reached an app: server name, tool and arguments.
func (f *fakeApps) calls() []string {
	var all []string
	for _, c := range f.Calls() {
		var p params
		if json.Unmarshal(c.Params, &p) == nil {
			all = append(all, c.Server+" "+p.Name+" "+string(p.Arguments))
		}
	}
	return all
}

// fixture is an engine with a real store and a real model provider, but fake apps.
type fixture struct {
	*chat.Engine
	t      *testing.T
	home   string
	model  *testenv.ModelProvider
	store  *store.Store
	apps   *fakeApps
	bus    *fakes.Events
	tools  *tools.Namespace
	config config.Models
}

// changed returns the tools for which data.changed was published.
func (h *fixture) changed() (names []string) {
	for _, e := range h.bus.All() {
		if d, ok := e.Data.(core.DataChanged); ok {
			names = append(names, d.Server+"__"+d.Tool)
		}
	}
	return names
}

// protocols returns the vendors whose protocols are tested.
func protocols() []string { return []string{"anthropic", "openai"} }

func open(t *testing.T, protocol string, change func(*config.Models), limit ...func(*chat.Options)) *fixture {
	t.Helper()
	home := t.TempDir()
	state := store.Options{Path: filepath.Join(home, "ropewalk.db"), URL: core.Secret(databases.StateURL(t)), Logger: hclog.NewNullLogger()}
	return openOn(t, home, state, provider.Provider(t), protocol, change, limit...)
}

// openOn opens an engine on a store that may be shared with others.
func openOn(t *testing.T, home string, state store.Options, p *testenv.ModelProvider, protocol string, change func(*config.Models), limit ...func(*chat.Options)) *fixture {
	t.Helper()
	h := &fixture{t: t, home: home, model: p, apps: newFakeApps(), bus: &fakes.Events{}}
	var err error
	if h.store, err = store.Open(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	c := config.Models{
		Default: protocol + ":test-model", MaxOutputTokens: 1000,
		Providers: map[string]config.ModelProvider{
			"anthropic": {Type: config.ProviderAnthropic, BaseURL: h.model.URL, APIKey: "k"},
			"openai":    {Type: config.ProviderOpenAI, BaseURL: h.model.URL + "/v1", APIKey: "k"},
		},
	}
	if change != nil {
		change(&c)
	}
	h.config = c
	models, err := chat.NewModels(c)
	if err != nil {
		t.Fatal(err)
	}
	h.tools = tools.New(tools.Options{Apps: h.apps, Events: h.bus, Features: config.Features{}, Results: h.store, Logger: hclog.NewNullLogger()})
	o := chat.Options{
		Store: h.store, Tools: h.tools, Models: models, Skills: skill.NewLibrary(h.home, nil, hclog.NewNullLogger()), Logger: hclog.NewNullLogger(),
		RunLease: lease, Events: h.bus,
	}
	for _, set := range limit {
		set(&o)
	}
	h.Engine = chat.New(o)
	h.tools.Add(h.tools.Search(nil), h.Delegate(), h.ManageSkills(), h.SetModelConfig(), h.tools.ReadResult())
	t.Cleanup(h.close)
	return h
}

// lease is how long the claim of a run lasts in tests.
const lease = 6 * time.Second

func (h *fixture) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := h.Close(ctx); err != nil {
		h.t.Errorf("closing the engine: %v", err)
	}
	if err := h.store.Close(); err != nil {
		h.t.Errorf("closing the store: %v", err)
	}
}

func owner() core.Caller {
	return core.Caller{Identity: core.Owner(), Workspace: core.Workspace{ID: core.DefaultWorkspaceID, Name: "Default", Role: core.RoleAdmin}}
}

// tape records the events of a run.
type tape struct {
	mu   sync.Mutex
	all  []chat.Event
	each func(chat.Event)
}

func (t *tape) emit(e chat.Event) {
	t.mu.Lock()
	t.all = append(t.all, e)
	t.mu.Unlock()
	if t.each != nil {
		t.each(e)
	}
}

// names returns the names of the events. Consecutive events with the same name count as one.
func (t *tape) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for _, e := range t.all {
		names = append(names, e.Name)
	}
	return slices.Compact(names)
}

// data returns the data of all events with that name.
func (t *tape) data(name string) (all []map[string]any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.all {
		if e.Name == name {
			raw, _ := json.Marshal(e.Data)
			var v map[string]any
			_ = json.Unmarshal(raw, &v)
			all = append(all, v)
		}
	}
	return all
}

func (h *fixture) say(r chat.Request) (chat.Answer, *tape, error) {
	h.t.Helper()
	run, err := h.Begin(h.t.Context(), owner(), r)
	if err != nil {
		h.t.Fatal(err)
	}
	events := &tape{}
	answer, err := run.Do(h.t.Context(), events.emit)
	return answer, events, err
}

func (h *fixture) must(r chat.Request) (chat.Answer, *tape) {
	h.t.Helper()
	answer, events, err := h.say(r)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer, events
}

// asked returns the bodies of the requests to the model, except those for titles.
func (h *fixture) asked() (bodies []map[string]any) {
	h.t.Helper()
	for _, a := range h.model.Journal(h.t) {
		if raw, _ := json.Marshal(a.Body["messages"]); !strings.Contains(string(raw), "Write a title") {
			bodies = append(bodies, a.Body)
		}
	}
	return bodies
}

func offered(body map[string]any) (names []string) {
	list, _ := body["tools"].([]any)
	for _, one := range list {
		f, _ := one.(map[string]any)["function"].(map[string]any)
		name, _ := f["name"].(string)
		names = append(names, name)
	}
	return names
}

func text(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}
