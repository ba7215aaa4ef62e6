package mcphttp

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core/limits"
)

func TestAUsersToolCallsPerSecondAreLimited(t *testing.T) {
	r := start(t, func(o *Options) { o.Limits = limits.New(limits.Settings{CallsPerSecond: 1}) })
	w := r.join(alice)
	call := func(w who) (*http.Response, string) { return r.say("POST", w, callBody(7, "demo__echo", "{}")) }
	for range 2 { // twice as many at once
		if resp, body := call(w); resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
	}
	resp, body := call(w)
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || !strings.Contains(body, `"id":7`) ||
		!strings.Contains(body, "limits.callsPerSecond") || !strings.Contains(body, `"error":"rate_limited"`) {
		t.Errorf("a third call: %d %v %s", resp.StatusCode, resp.Header, body)
	}
	if resp, body := r.say("POST", w, `{"jsonrpc":"2.0","id":8,"method":"tools/list"}`); resp.StatusCode != 200 {
		t.Errorf("a list: %d %s", resp.StatusCode, body)
	}
	if resp, body := call(r.join(who{token: "bob", workspace: "ws_one"})); resp.StatusCode != 200 {
		t.Errorf("a call of another user: %d %s", resp.StatusCode, body)
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
func TestABodysMemoryIsReleasedWhenTheLastOfItsCallsEnds(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	before := r.released.Load()
	resp := r.ask("POST", w, callBody(1, "demo__slow", `{}`)) // which sends progress, so its response has begun
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
