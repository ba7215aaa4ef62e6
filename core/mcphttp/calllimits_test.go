package mcphttp

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/mcphttp/sse"
)

func TestAUsersToolCallsPerSecondAreLimited(t *testing.T) {
	r := start(t, func(o *Options) { o.Limits = limits.New(limits.Settings{CallsPerSecond: 1}) })
	w := r.join(alice)
	call := func(w who) (*http.Response, string) { return r.say("POST", w, callBody(7, "demo__echo", "{}")) }
	began := time.Now()
	allowed := 0
	resp, body := call(w)
	for ; resp.StatusCode == 200; resp, body = call(w) {
		if allowed++; allowed > 2+int(time.Since(began)/time.Second) { // twice as many at once, and then one each second
			t.Fatalf("%d calls in %v", allowed, time.Since(began))
		}
	}
	if allowed < 2 || resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || !strings.Contains(body, `"id":7`) ||
		!strings.Contains(body, "limits.callsPerSecond") || !strings.Contains(body, `"error":"rate_limited"`) {
		t.Errorf("after %d calls: %d %v %s", allowed, resp.StatusCode, resp.Header, body)
	}
	if resp, body := r.say("POST", w, `{"jsonrpc":"2.0","id":8,"method":"tools/list"}`); resp.StatusCode != 200 {
		t.Errorf("a list: %d %s", resp.StatusCode, body)
	}
	if resp, body := call(r.join(who{token: "bob", workspace: "ws_one"})); resp.StatusCode != 200 {
		t.Errorf("a call by another user: %d %s", resp.StatusCode, body)
	}
}

func TestAUsersConcurrentToolCallsAreLimited(t *testing.T) {
	r := start(t, func(o *Options) {
		o.Limits = limits.New(limits.Settings{AtATime: map[limits.Kind]int{limits.Calls: 1}})
	})
	w := r.join(alice)
	first := make(chan int, 1)
	go func() {
		resp, _ := r.say("POST", w, callBody(1, "demo__wait", "{}"))
		first <- resp.StatusCode
	}()
	<-r.fakeNamespace.started
	if resp, body := r.say("POST", w, callBody(2, "demo__echo", "{}")); resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || !strings.Contains(body, "limits.calls") {
		t.Errorf("a second call: %d %s", resp.StatusCode, body)
	}
	close(r.fakeNamespace.release)
	if status := <-first; status != 200 {
		t.Errorf("the first call: %d", status)
	}
	for id := 3; id < 6; id++ { // each call releases its place
		if resp, body := r.say("POST", w, callBody(id, "demo__echo", "{}")); resp.StatusCode != 200 {
			t.Errorf("call %d: %d %s", id, resp.StatusCode, body)
		}
	}
}

// A call keeps its part of the body, for example while it waits for an approval, even if the client has disconnected.
func TestABodysMemoryIsReleasedWhenItsLastCallEnds(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	before := r.released.Load()
	resp := r.ask("POST", w, callBody(1, "demo__slow", `{}`)) // it sends progress, so its response has begun
	if err := resp.Body.Close(); err != nil || resp.StatusCode != 200 {
		t.Fatalf("%d %v", resp.StatusCode, err)
	}
	if n := r.released.Load() - before; n != 0 {
		t.Errorf("released %d times while the call runs", n)
	}
	close(r.fakeNamespace.release)
	deadline := time.Now().Add(time.Minute)
	for r.released.Load() == before && time.Now().Before(deadline) {
		<-time.After(time.Millisecond)
	}
	if n := r.released.Load() - before; n != 1 {
		t.Errorf("released %d times in the end", n)
	}
}

func TestAllRequestsToAppsAreLimited(t *testing.T) {
	r := start(t, func(o *Options) {
		o.Limits = limits.New(limits.Settings{AtATime: map[limits.Kind]int{limits.Calls: 1}})
	})
	w := r.join(alice)
	first := make(chan int, 1)
	go func() {
		resp, _ := r.say("POST", w, callBody(1, "demo__wait", "{}"))
		first <- resp.StatusCode
	}()
	<-r.fakeNamespace.started
	for _, request := range []string{
		`"prompts/get","params":{"name":"demo__p"}`, `"resources/read","params":{"uri":"a://b"}`, `"resources/subscribe","params":{"uri":"a://b"}`,
		`"completion/complete","params":{"ref":{"type":"ref/prompt","name":"demo__p"},"argument":{"name":"a","value":"b"}}`,
		`"skills/list","params":{}`, `"skills/get","params":{"uri":"a://b"}`,
	} {
		if resp, body := r.say("POST", w, `{"jsonrpc":"2.0","id":2,"method":`+request+`}`); resp.StatusCode != 429 || !strings.Contains(body, "limits.calls") {
			t.Errorf("%s: %d %s", request, resp.StatusCode, body)
		}
	}
	close(r.fakeNamespace.release)
	if status := <-first; status != 200 {
		t.Errorf("the first call: %d", status)
	}
}

// A batch's answers wait for the last one, and a client may never read them.
func TestUnreadAnswersAreBounded(t *testing.T) {
	r := start(t, func(o *Options) { o.Limits = limits.New(limits.Settings{UnreadBytes: 400 << 10}) })
	w := r.join(alice, "2025-03-26")
	large := `{"text":"` + strings.Repeat("x", 80<<10) + `"}`
	for range 2 { // a response that was read is no longer counted
		resp, body := r.say("POST", w, "["+callBody(1, "demo__echo", large)+","+callBody(2, "demo__echo", large)+"]")
		if resp.StatusCode != 200 || strings.Count(body, `"error":"rate_limited"`) != 1 || strings.Count(body, strings.Repeat("x", 80<<10)) != 1 {
			t.Errorf("two large answers if only one fits: %d, %d bytes: %.300s", resp.StatusCode, len(body), body)
		}
	}
	if resp, body := r.say("POST", r.join(who{token: "bob", workspace: "ws_one"}), callBody(1, "demo__echo", large)); resp.StatusCode != 200 || strings.Contains(body, "rate_limited") {
		t.Errorf("another user: %d %.200s", resp.StatusCode, body)
	}
}

// A context that is never cancelled would stay in memory until the endpoint is closed.
func TestARefusedCallHasNoContext(t *testing.T) {
	r := start(t, func(o *Options) {
		o.Limits = limits.New(limits.Settings{AtATime: map[limits.Kind]int{limits.Calls: 1}})
	})
	e, me := r.endpoint, caller("alice", "ws_one")
	s := admit(t, e, me)
	newCalls := func(ids ...string) (calls []*call) {
		for _, id := range ids {
			calls = append(calls, newCall(Message{ID: json.RawMessage(id), Method: "tools/call"}, me, s))
		}
		return calls
	}
	for name, refused := range map[string][]*call{"more calls than the user may make": newCalls("1", "2"), "one ID twice": newCalls("3", "3")} {
		for _, k := range refused {
			if name == "one ID twice" {
				k.Method = "ping"
			}
		}
		if f := e.begin(e.root, s, refused, sse.NewResponse(len(refused), true)); f == nil {
			t.Fatalf("%s: accepted", name)
		}
		for _, k := range refused {
			if k.context != nil && k.context.Err() == nil {
				t.Errorf("%s: a refused call has a context that is never cancelled", name)
			}
		}
	}
}
