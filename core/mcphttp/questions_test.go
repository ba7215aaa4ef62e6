package mcphttp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// joinWith opens a session for a client with the given capabilities.
func (r *rig) joinWith(w who, capabilities string) who {
	r.Helper()
	resp, body := r.say("POST", w, strings.Replace(hello("2025-11-25"), `"capabilities":{}`, `"capabilities":`+capabilities, 1))
	w.session = resp.Header.Get("Mcp-Session-Id")
	if w.session == "" {
		r.Fatalf("initialize: %d %s", resp.StatusCode, body)
	}
	r.say("POST", w, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return w
}

const asking = `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"demo://ask"}}`

func TestAQuestionIsSentOnItsCallsStreamAndAnsweredByPOST(t *testing.T) {
	r := start(t, nil)
	w := r.joinWith(alice, `{"elicitation":{}}`)
	other := r.joinWith(who{token: "bob", workspace: "ws_one"}, `{"elicitation":{}}`)
	resp := r.ask("POST", w, asking)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	var question struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	if text := next(t, lines); json.Unmarshal([]byte(text), &question) != nil || question.Method != "elicitation/create" || string(question.Params) != `{"message":"?","x":1.50}` {
		t.Fatalf("asked %s", text)
	}
	reply := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"n":1.0}}}`, question.ID)
	for _, stray := range []string{`{"jsonrpc":"2.0","id":99,"result":{}}`, strings.Replace(reply, "accept", "foreign", 1)} {
		if resp, _ := r.say("POST", other, stray); resp.StatusCode != 202 { // an answer from another session has no effect here
			t.Errorf("%d", resp.StatusCode)
		}
	}
	for range 2 { // the second answer has no effect
		if resp, body := r.say("POST", w, reply); resp.StatusCode != 202 || body != "" {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	}
	if got := next(t, lines); !strings.Contains(got, `"answer":{"action":"accept","content":{"n":1.0}}`) {
		t.Errorf("got %s", got)
	}
}

// Alice and Bob get questions at the same time, in two workspaces and many sessions, and all sessions use the same
// question IDs. Each answer must reach the call that asked.
func TestEachAnswerReachesItsOwnQuestion(t *testing.T) {
	r := start(t, nil)
	pairs := []who{alice, {"bob", "ws_one", ""}, {"alice", "ws_two", ""}, {"bob", "ws_two", ""}}
	var group sync.WaitGroup
	for i := range 32 {
		w := r.joinWith(pairs[i%len(pairs)], `{"elicitation":{}}`)
		group.Go(func() {
			for n := range 20 {
				resp := r.ask("POST", w, strings.Replace(asking, `"id":1`, fmt.Sprintf(`"id":%d`, n), 1))
				lines := bufio.NewScanner(resp.Body)
				question, nonce := next(t, lines), fmt.Sprintf("%d-%d", i, n)
				r.say("POST", w, fmt.Sprintf(`{"jsonrpc":"2.0","id":"ask-%d","result":{"action":"accept","content":{"nonce":%q}}}`, n+1, nonce))
				if got := next(t, lines); !strings.Contains(got, `"nonce":"`+nonce+`"`) || !strings.Contains(question, fmt.Sprintf(`"ask-%d"`, n+1)) {
					t.Errorf("asked %s, got %s, want %s", question, got, nonce)
				}
				resp.Body.Close()
			}
		})
	}
	group.Wait()
}

// Two apps may choose the same progress token for their questions. Progress must reach the app that asked.
func TestProgressOnAQuestionReachesTheAppThatAskedIt(t *testing.T) {
	r := start(t, nil)
	heard := make(chan string, 8)
	r.fakeNamespace.app.heard = func(n rpc.Notification) { heard <- n.Method + " " + string(n.Params) }
	for i, w := range []who{r.joinWith(alice, `{"elicitation":{}}`), r.joinWith(who{token: "bob", workspace: "ws_one"}, `{"elicitation":{}}`)} {
		resp := r.ask("POST", w, strings.Replace(asking, "demo://ask", "demo://ask/7", 1))
		lines := bufio.NewScanner(resp.Body)
		if text := next(t, lines); !strings.Contains(text, `"params":{"message":"?","x":1.50,"_meta":{"progressToken":"ask-1","y":1.0}}`) {
			t.Fatalf("asked %s", text)
		}
		for _, text := range []string{
			`"progressToken":"ask-9","progress":1`, `"progressToken":7,"progress":2`, fmt.Sprintf(`"progressToken":"ask-1","progress":3.0,"message":"%d"`, i),
		} {
			if resp, _ := r.say("POST", w, `{"jsonrpc":"2.0","method":"notifications/progress","params":{`+text+`}}`); resp.StatusCode != 202 {
				t.Errorf("%d", resp.StatusCode)
			}
		}
		r.say("POST", w, `{"jsonrpc":"2.0","id":"ask-1","result":{"action":"accept"}}`)
		next(t, lines)
		r.say("POST", w, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"ask-1","progress":4}}`) // too late
		if got, want := <-heard, fmt.Sprintf(`notifications/progress {"progressToken":7,"progress":3.0,"message":"%d"}`, i); got != want {
			t.Errorf("the app received %s, want %s", got, want)
		}
		resp.Body.Close()
	}
	if len(heard) != 0 {
		t.Errorf("the app received %s", <-heard)
	}
}

func TestAQuestionWhoseCallHasEndedGoesToItsClientsOpenStream(t *testing.T) {
	r := start(t, nil)
	w := r.joinWith(alice, `{"elicitation":{}}`)
	s, over := r.endpoint.live.All()[0], &call{number: 999}
	ask := func() error {
		_, err := s.Ask(t.Context(), over, rpc.Question{Method: "elicitation/create", Params: json.RawMessage(`{"message":"?"}`)})
		return err
	}
	if err := ask(); err == nil || !strings.Contains(err.Error(), "no open stream") {
		t.Errorf("without any stream: %v", err)
	}
	for i, open := range []func() *http.Response{
		func() *http.Response { return r.ask("POST", w, callBody(7, "demo__wait", "{}")) },
		func() *http.Response { return r.ask("GET", w, "") },
	} {
		answered := make(chan error, 1)
		streams := make(chan *http.Response, 1)
		go func() { streams <- open() }()
		if i == 0 {
			<-r.fakeNamespace.started
		} else {
			streams <- <-streams // the GET stream is open
		}
		go func() { answered <- ask() }()
		resp := <-streams
		if text := next(t, bufio.NewScanner(resp.Body)); !strings.Contains(text, fmt.Sprintf(`"id":"ask-%d"`, i+2)) {
			t.Errorf("asked %s", text)
		}
		r.say("POST", w, fmt.Sprintf(`{"jsonrpc":"2.0","id":"ask-%d","result":{"action":"accept"}}`, i+2))
		if err := <-answered; err != nil {
			t.Error(err)
		}
		defer resp.Body.Close()
	}
	close(r.fakeNamespace.release)
}

func TestACancelledCallWithdrawsItsQuestion(t *testing.T) {
	r := start(t, nil)
	w := r.joinWith(alice, `{"elicitation":{}}`)
	resp := r.ask("POST", w, asking)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next(t, lines)
	r.say("POST", w, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if got := next(t, lines); !strings.Contains(got, `"method":"notifications/cancelled","params":{"requestId":"ask-1"`) {
		t.Errorf("got %s", got)
	}
	if got := next(t, lines); !strings.Contains(got, `"code":-32800`) {
		t.Errorf("got %s", got)
	}
}

func TestEndingASessionEndsItsQuestions(t *testing.T) {
	r := start(t, nil)
	w := r.joinWith(alice, `{"elicitation":{}}`)
	resp := r.ask("POST", w, asking)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next(t, lines)
	r.say("DELETE", w, "")
	if got := next(t, lines); !strings.Contains(got, `the session was closed`) {
		t.Errorf("got %s", got)
	}
}

func TestASessionHasEverythingThatAppsOffer(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	for _, c := range []struct{ method, params, want string }{
		{"prompts/list", `{}`, `"result":{"prompts":[{"name":"demo__greet","x-unknown":12345678901234567890}]}}`},
		{"resources/list", `{}`, `"result":{"resources":[{"uri":"demo://a","name":"a","x":1.50}]}}`},
		{"resources/templates/list", `{}`, `"result":{"resourceTemplates":[{"uriTemplate":"demo://t/{id}","name":"t"}]}}`},
		{"prompts/list", `{"cursor":"x"}`, `-32602`},
		{"prompts/get", `{"name":"demo__greet","arguments":{"a":"b"},"_meta":{"x":1.0}}`, `"params":{"name":"greet","arguments":{"a":"b"},"_meta":{"x":1.0}}`},
		{"prompts/get", `{"name":"demo__none"}`, `-32602`},
		{"resources/read", `{"uri":"demo://t/5"}`, `"params":{"uri":"demo://t/5"},"cacheScope":"public"}`},
		{"resources/read", `{"uri":"demo://none"}`, `{"code":-32002,"message":"Resource not found","data":{"uri":"demo://none"}}`},
		{"resources/read", `{"uri":"ropewalk://nobody/x"}`, `"code":-32002`},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"demo://t/{id}"},"argument":{"name":"id","value":"1"}}`, `"uri":"demo://t/{id}"`},
		{"completion/complete", `{"ref":{"type":"ref/other"},"argument":{"name":"id","value":"1"}}`, `-32602`},
		{"logging/setLevel", `{"level":"loud"}`, `-32602`},
		{"logging/setLevel", `{"level":"error"}`, `"result":{}`},
		{"resources/subscribe", `{}`, `-32602`},
		{"server/discover", `{}`, `-32601`},
	} {
		t.Run(c.method+c.params, func(t *testing.T) {
			resp, body := r.in(t).say("POST", w, `{"jsonrpc":"2.0","id":1,"method":"`+c.method+`","params":`+c.params+`}`)
			if resp.StatusCode != 200 && c.method != "server/discover" || !strings.Contains(body, c.want) {
				t.Errorf("%d %s\nwant %s", resp.StatusCode, body, c.want)
			}
		})
	}
	if asked := r.fakeNamespace.app.Operations(); !slices.Contains(asked, "level ws_one error") {
		t.Errorf("the apps received %q", asked)
	}
	r.say("POST", w, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	testkit.Eventually(t, "the apps are notified that roots changed", func() bool {
		return slices.ContainsFunc(r.fakeNamespace.app.Operations(), func(o string) bool { return strings.HasPrefix(o, "roots ") })
	})
}

func TestUpdatesReachSubscribers(t *testing.T) {
	r := start(t, nil)
	w, other := r.join(alice), r.join(who{token: "bob", workspace: "ws_one"})
	resp, lines := r.listen(w)
	defer resp.Body.Close()
	quiet, others := r.listen(other)
	defer quiet.Body.Close()
	subscribe := `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"demo://a"}}`
	for range 2 {
		if _, body := r.say("POST", w, subscribe); body != `{"jsonrpc":"2.0","id":1,"result":{}}` {
			t.Errorf("%s", body)
		}
	}
	r.fakeNamespace.app.notify("notifications/resources/updated", `{"uri":"demo://a","x":1.0}`)
	if got := next(t, lines); got != `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"demo://a","x":1.0}}` {
		t.Errorf("got %s", got)
	}
	for kind, want := range map[core.Kind]string{core.KindPrompts: "prompts", core.KindTemplates: "resources"} {
		r.fakeNamespace.change(kind)
		for _, reader := range []*bufio.Scanner{lines, others} { // the other session receives this first
			if got := next(t, reader); got != `{"jsonrpc":"2.0","method":"notifications/`+want+`/list_changed"}` {
				t.Errorf("got %s", got)
			}
		}
	}
	r.say("POST", w, strings.Replace(subscribe, "subscribe", "unsubscribe", 1))
	if n := r.fakeNamespace.app.Subscriptions("demo://a"); n != 0 {
		t.Errorf("%d subscriptions remain", n)
	}
	r.say("POST", w, subscribe)
	r.say("DELETE", w, "")
	for r.fakeNamespace.app.Subscriptions("demo://a") != 0 {
		<-time.After(time.Millisecond)
	}
}
