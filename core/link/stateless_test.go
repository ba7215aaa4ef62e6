package link

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/core/link/stdio"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// newPeer returns a stateless link to a peer.
func newPeer(t *testing.T, capabilities string, o Options) (*Link, *peer) {
	t.Helper()
	in, out, p := pipes(t)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		p.initialize = p.read()
		p.answer(p.initialize, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":`+capabilities+
			`,"instructions":"be new","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"2.0"}}}`)
	}()
	o.Stateless = true
	l, err := Open(t.Context(), stdio.New(in, out, stdio.Options{}), o)
	if err != nil {
		t.Fatal(err)
	}
	<-answered
	t.Cleanup(func() { _ = l.Close() })
	return l, p
}

func TestAStatelessAppIsDiscoveredWithoutAHandshake(t *testing.T) {
	l, p := newPeer(t, `{"tools":{}}`, Options{})
	if p.initialize.Method != "server/discover" {
		t.Errorf("the handshake was %s", p.initialize.Method)
	}
	info := l.Info()
	if !info.Stateless || info.ProtocolVersion != StatelessVersion || info.Name != "new" || info.Version != "2.0" || info.Instructions != "be new" || !info.Offers("tools") || info.Offers("prompts") {
		t.Errorf("info is %+v", info)
	}
}

func TestTheHandshakeFollowsIfAnAppDoesNotSupportDiscovery(t *testing.T) {
	in, out, p := pipes(t)
	go func() {
		m := p.read()
		p.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"what?"}}`, m.ID)
		p.handshake()
	}()
	l, err := Open(t.Context(), stdio.New(in, out, stdio.Options{}), Options{Stateless: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info := l.Info(); info.Stateless || info.ProtocolVersion != ProtocolVersion || info.Name != "peer" {
		t.Errorf("info is %+v", info)
	}
}

func TestARequestsMetaMatchesTheConnectionsRevision(t *testing.T) {
	const clientMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"ropewalk","version":"9"},"io.modelcontextprotocol/clientCapabilities":`
	own := `{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/logLevel":"info","a":1}}`
	for name, c := range map[string]struct{ params, capabilities, newWant, oldWant string }{
		"no params":       {``, ``, `{"_meta":{` + clientMeta + `{}}}`, ``},
		"no _meta":        {`{"name":"x","arguments":{"_meta":1}}`, `{"roots":{}}`, `{"name":"x","arguments":{"_meta":1},"_meta":{` + clientMeta + `{"roots":{}}}}`, `{"name":"x","arguments":{"_meta":1}}`},
		"a _meta":         {`{"_meta":{"a":1.0,"b":"\u00e9"},"name":"x"}`, ``, `{"_meta":{"a":1.0,"b":"\u00e9",` + clientMeta + `{}},"name":"x"}`, `{"_meta":{"a":1.0,"b":"\u00e9"},"name":"x"}`},
		"a _meta of null": {`{"_meta":null,"name":"x"}`, ``, `{"_meta":{` + clientMeta + `{}},"name":"x"}`, `{"_meta":null,"name":"x"}`},
		"a client's members, escaped": {
			`{"_meta":{"io.modelcontextprotocol\/protocolVersion":"2026-07-28","b":"\n"}}`, ``,
			`{"_meta":{"io.modelcontextprotocol\/protocolVersion":"2026-07-28","b":"\n"}}`, `{"_meta":{"b":"\n"}}`,
		},
		"a client's members": {own, `{"roots":{}}`, own, `{"name":"x","_meta":{"a":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			fresh, p := newPeer(t, `{"tools":{}}`, Options{Version: "9"})
			old, q := dial(t, stdio.Options{}, Options{})
			for _, one := range []struct {
				l    *Link
				p    *peer
				want string
			}{{fresh, p, c.newWant}, {old, q, c.oldWant}} {
				done := make(chan error, 1)
				go func() {
					_, err := one.l.Call(t.Context(), Request{Method: "tools/call", Params: json.RawMessage(c.params), Capabilities: json.RawMessage(c.capabilities)})
					done <- err
				}()
				m := one.p.read()
				if string(m.Params) != one.want {
					t.Errorf("sent %s, want %s", m.Params, one.want)
				}
				one.p.answer(m, `{}`)
				if err := wait(t, done); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestOneListenRequestContainsAllSubscriptions(t *testing.T) {
	updated := make(chan rpc.Notification, 10)
	l, p := newPeer(t, `{"tools":{"listChanged":true},"prompts":{},"resources":{"listChanged":true}}`, Options{
		OnListChanged: func(string) {}, OnNotification: func(n rpc.Notification, _ []Caller) { updated <- n },
	})
	wanted := func(m message) string {
		var params struct{ Notifications json.RawMessage }
		_ = json.Unmarshal(m.Params, &params)
		return m.Method + " " + string(params.Notifications)
	}
	first := p.read()
	if got, want := wanted(first), `subscriptions/listen {"resourcesListChanged":true,"toolsListChanged":true}`; got != want {
		t.Errorf("requested %s, want %s", got, want)
	}
	if err := l.Subscribe(t.Context(), "a://b"); err != nil {
		t.Fatal(err)
	}
	if m := p.read(); m.Method != "notifications/cancelled" {
		t.Errorf("received before the first ended: %s", m.Method)
	}
	p.answer(first, `{}`)
	second := p.read()
	if got, want := wanted(second), `subscriptions/listen {"resourceSubscriptions":["a://b"],"resourcesListChanged":true,"toolsListChanged":true}`; got != want {
		t.Errorf("requested %s, want %s", got, want)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://b"}}`)
	if n := wait(t, updated); n.Method != "notifications/resources/updated" {
		t.Errorf("received %v", n)
	}
	if err := l.Unsubscribe(t.Context(), "a://b"); err != nil {
		t.Fatal(err)
	}
	p.read()
	p.answer(second, `{}`)
	if got := wanted(p.read()); got != wanted(first) {
		t.Errorf("the last request was %s", got)
	}
}

const acknowledgement = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{}}}`

func TestALinkIsNotOpenBeforeTheAppReportsChanges(t *testing.T) {
	for name, answer := range map[string]func(p *peer, listen message){
		"the app acknowledges": func(p *peer, _ message) { p.send(acknowledgement) },
		"the app rejects": func(p *peer, m message) {
			p.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, out, p := pipes(t)
			opened := make(chan struct{})
			go func() {
				p.answer(p.read(), `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}`)
				m := p.read()
				select {
				case <-opened:
					t.Errorf("the link was open before the app responded to %s", m.Method)
				case <-time.After(50 * time.Millisecond):
				}
				answer(p, m)
			}()
			l, err := Open(t.Context(), stdio.New(in, out, stdio.Options{}), Options{Stateless: true, OnListChanged: func(string) {}})
			close(opened)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestListsAreRereadAfterAPeriodWithoutChangeReports(t *testing.T) {
	changed := make(chan string, 10)
	l, p := newPeer(t, `{"tools":{"listChanged":true},"prompts":{},"resources":{"listChanged":true}}`, Options{OnListChanged: func(kind string) { changed <- kind }})
	acknowledge := func(when string) {
		p.send(acknowledgement)
		if got := []string{wait(t, changed), wait(t, changed)}; !slices.Equal(got, []string{"tools", "resources"}) {
			t.Errorf("%s the lists to reread are %v", when, got)
		}
	}
	first := p.read()
	acknowledge("after a late acknowledgement")
	if err := l.Subscribe(t.Context(), "a://b"); err != nil {
		t.Fatal(err)
	}
	p.read() // the first is cancelled
	p.answer(first, `{}`)
	p.read()
	acknowledge("after another request replaced the first")
}

func TestTheSDKsServerReportsChangesInTheStatelessRevision(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "s"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	s.AddResource(&mcp.Resource{Name: "r", URI: "a://b"}, nil)
	in, out := servedPipes(t, s)
	changed, updated := make(chan string, 10), make(chan string, 10)
	l, err := Open(t.Context(), stdio.New(in, out, stdio.Options{}), Options{
		Stateless: true, OnListChanged: func(kind string) { changed <- kind },
		OnNotification: func(n rpc.Notification, _ []Caller) { updated <- n.Method },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if !l.Info().Stateless {
		t.Fatal("the connection is not stateless")
	}
	acknowledged := func() {
		if m := wait(t, updated); m != "notifications/subscriptions/acknowledged" {
			t.Errorf("received %s", m)
		}
	}
	acknowledged()
	if err := l.Subscribe(t.Context(), "a://b"); err != nil {
		t.Fatal(err)
	}
	acknowledged()
	if err := s.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "a://b"}); err != nil {
		t.Fatal(err)
	}
	if m := wait(t, updated); m != "notifications/resources/updated" {
		t.Errorf("received %s", m)
	}
	for wait(t, changed) != "resources" { // the lists are reread after the second acknowledgement
	}
	s.AddResource(&mcp.Resource{Name: "new", URI: "a://c"}, nil)
	for wait(t, changed) != "resources" {
	}
	if list, err := l.List(t.Context(), core.KindResources); err != nil || len(list) != 2 {
		t.Errorf("%d resources (%v)", len(list), err)
	}
}

func TestAQuestionComesWithTheCallersOfPendingCalls(t *testing.T) {
	asked := make(chan []Caller, 1)
	l, p := dial(t, stdio.Options{}, Options{Requests: map[string]RequestHandler{
		"elicitation/create": func(_ context.Context, _ rpc.Question, callers []Caller) (json.RawMessage, error) {
			asked <- callers
			return json.RawMessage(`{}`), nil
		},
	}})
	ask := func() []Caller {
		p.send(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`)
		callers := wait(t, asked)
		p.read() // the response
		return callers
	}
	if got := ask(); len(got) != 0 {
		t.Errorf("without calls the callers are %v", got)
	}
	var messages []message
	for _, who := range []Caller{namedCaller("alice"), nil, namedCaller("bob")} {
		go func() { _, _ = l.Call(t.Context(), Request{Method: "tools/call", Caller: who}) }()
		messages = append(messages, p.read())
	}
	if got := ask(); !slices.Equal(got, []Caller{namedCaller("alice"), namedCaller("bob")}) {
		t.Errorf("the callers are %v", got)
	}
	p.answer(messages[0], `{}`)
	p.send(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`) // answered only after the other response has been read
	p.read()
	if got := ask(); !slices.Equal(got, []Caller{namedCaller("bob")}) {
		t.Errorf("the callers are %v", got)
	}
}

func TestAQuestionDoesNotOvertakeTheNotificationsOfItsCallers(t *testing.T) {
	order := make(chan string, 8)
	l, p := dial(t, stdio.Options{}, Options{Requests: map[string]RequestHandler{
		"elicitation/create": func(context.Context, rpc.Question, []Caller) (json.RawMessage, error) {
			order <- "question"
			return json.RawMessage(`{}`), nil
		},
	}})
	holding, release := make(chan struct{}), make(chan struct{})
	for _, r := range []Request{
		{Caller: namedCaller("alice"), Notify: func(rpc.Notification) { holding <- struct{}{}; <-release; order <- "progress" }},
		{Caller: namedCaller("bob"), Notify: func(rpc.Notification) { order <- "progress"; panic("bob fails") }}, // the panic ends the call
		{Caller: namedCaller("carol")},
	} {
		r.Method, r.Params = "tools/call", json.RawMessage(`{"_meta":{"progressToken":1}}`)
		go func() { _, _ = l.Call(t.Context(), r) }()
		params := p.read().Params
		meta, err := rawjson.Find(params, "_meta")
		if err != nil {
			t.Fatal(err)
		}
		p.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":%s}`, strings.Replace(string(meta.In(params)), "}", `,"progress":1}`, 1))
	}
	<-holding // the notification is being delivered
	p.send(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`)
	if got := wait(t, order); got != "progress" {
		t.Errorf("Bob's call: %s", got)
	}
	p.read() // the cancellation of Bob's call
	release <- struct{}{}
	for _, want := range []string{"progress", "question"} {
		if got := wait(t, order); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestNotificationsAboutAQuestionAreSentBeforeItsAnswer(t *testing.T) {
	kept := make(chan rpc.Question, 1)
	_, p := dial(t, stdio.Options{}, Options{Requests: map[string]RequestHandler{"elicitation/create": func(_ context.Context, q rpc.Question, _ []Caller) (json.RawMessage, error) {
		for i := range 3 {
			q.Notify(rpc.Notification{Method: "notifications/progress", Params: json.RawMessage(fmt.Sprintf(`{"progressToken":7,"progress":%d}`, i))})
		}
		kept <- q
		return json.RawMessage(`{"action":"accept"}`), nil
	}}})
	p.send(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"_meta":{"progressToken":7}}}`)
	for i := range 3 {
		if m := p.read(); m.Method != "notifications/progress" || string(m.Params) != fmt.Sprintf(`{"progressToken":7,"progress":%d}`, i) {
			t.Errorf("got %s %s", m.Method, m.Params)
		}
	}
	if m := p.read(); m.Method != "" || string(m.ID) != `"q"` {
		t.Errorf("got %s %s", m.ID, m.Method)
	}
	q := wait(t, kept)
	q.Notify(rpc.Notification{Method: "notifications/progress", Params: json.RawMessage(`{"progressToken":7,"progress":4}`)}) // too late
	p.send(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
	if m := p.read(); string(m.ID) != `"ping"` {
		t.Errorf("received after the answer: %s %s", m.Method, m.Params)
	}
}

func TestPromptsResourcesAndTemplatesAreListed(t *testing.T) {
	l, p := newPeer(t, `{"prompts":{},"resources":{}}`, Options{})
	for kind, method := range map[core.Kind]string{core.KindPrompts: "prompts/list", core.KindResources: "resources/list", core.KindTemplates: "resources/templates/list"} {
		got := make(chan []json.RawMessage, 1)
		go func() {
			list, _ := l.List(t.Context(), kind)
			got <- list
		}()
		m := p.read()
		p.answer(m, `{"`+string(kind)+`":[{"a":1.0}],"nextCursor":"n"}`)
		p.answer(p.read(), `{"`+string(kind)+`":[{"b":2}]}`)
		if list := wait(t, got); m.Method != method || len(list) != 2 || string(list[0]) != `{"a":1.0}` {
			t.Errorf("%s by %s: %s", kind, m.Method, list)
		}
	}
	if list, err := l.List(t.Context(), core.KindTools); err != nil || list != nil {
		t.Errorf("tools that are not offered: %s (%v)", list, err)
	}
}

func TestRemoteServersAreCalledInTheStatelessRevision(t *testing.T) {
	for _, kind := range []string{"stateless", "streamable-http"} {
		t.Run(kind, func(t *testing.T) {
			changed := make(chan string, 10)
			l := mustOpen(t, core.Remote{URL: serve(t, handlers(sdkServer())[kind]), Type: "streamable-http"}, remote.Options{}, Options{
				Stateless: true, OnListChanged: func(kind string) { changed <- kind },
			})
			if fresh := kind == "stateless"; l.Info().Stateless != fresh { // the other handler supports only the older revisions
				t.Errorf("info is %+v", l.Info())
			}
			for range 2 {
				result, err := l.Call(t.Context(), Request{Method: "tools/call", Params: json.RawMessage(`{"name":"echo","arguments":{"text":"é"}}`)})
				if err != nil || strings.Contains(string(result), `"resultType":"complete"`) != l.Info().Stateless {
					t.Errorf("got %s (%v)", result, err)
				}
			}
			if tools, err := l.List(t.Context(), core.KindTools); err != nil || len(tools) != 4 {
				t.Errorf("%d tools (%v)", len(tools), err)
			}
			remoteProgress(t, l)
			if _, err := l.Call(t.Context(), Request{Method: "tools/call", Params: json.RawMessage(`{"name":"change"}`)}); err != nil {
				t.Errorf("change: %v", err)
			}
			if got := wait(t, changed); got != "tools" {
				t.Errorf("changed: %s", got)
			}
		})
	}
}

func TestTheNameAndTheVersionThatAnAppStatesAreShortened(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	l := &Link{handshake: json.RawMessage(`{"protocolVersion":"2025-11-25","serverInfo":{"name":"` + long + `","version":"1` + long + `"}}`)}
	if err := l.readHandshake(); err != nil {
		t.Fatal(err)
	}
	if info := l.Info(); info.Name != long[:200] || info.Version != "1"+long[:198] {
		t.Errorf("the name has %d bytes, the version %d", len(info.Name), len(info.Version))
	}
}
