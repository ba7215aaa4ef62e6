package mcphttp

import (
	"fmt"
	"strings"
	"testing"
)

func TestAClientCancelsOnlyItsOwnCall(t *testing.T) {
	r := start(t, nil)
	a, b := r.join(alice), r.join(alice)
	answers := make(chan string, 2)
	for _, w := range []who{a, b} {
		go func() {
			_, text := r.in(t).say("POST", w, callBody("same", "demo__wait", "{}"))
			answers <- text
		}()
		<-r.fakeNamespace.started
	}
	if resp, text := r.say("POST", a, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"same"}}`); resp.StatusCode != 202 || text != "" {
		t.Errorf("the cancellation: %d %s", resp.StatusCode, text)
	}
	if got, want := <-answers, `{"jsonrpc":"2.0","error":{"code":-32800,"message":"the call was cancelled"},"id":"same"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	close(r.fakeNamespace.release)
	if got := <-answers; !strings.Contains(got, `"result"`) {
		t.Errorf("the other session's call: %s", got)
	}
}

func TestAnIDInFlightIsRefusedUntilItsCallIsAnswered(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	answer := make(chan string, 1)
	go func() {
		_, text := r.in(t).say("POST", w, callBody(5, "demo__wait", "{}"))
		answer <- text
	}()
	<-r.fakeNamespace.started
	for _, body := range []string{callBody(5, "demo__echo", "{}"), `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":5,"method":"ping"}`} {
		if resp, text := r.say("POST", w, body); resp.StatusCode != 400 || !strings.Contains(text, "already in flight") {
			t.Errorf("%s: %d %s", body, resp.StatusCode, text)
		}
	}
	close(r.fakeNamespace.release)
	if got := <-answer; !strings.Contains(got, `"result"`) {
		t.Errorf("the first call: %s", got)
	}
	if resp, text := r.say("POST", w, callBody(5, "demo__echo", "{}")); resp.StatusCode != 200 || !strings.Contains(text, `"result"`) {
		t.Errorf("the id should be free again: %d %s", resp.StatusCode, text)
	}
}

func TestEndingASessionEndsItsCalls(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	answer := make(chan string, 1)
	go func() {
		_, text := r.in(t).say("POST", w, callBody(5, "demo__wait", "{}"))
		answer <- text
	}()
	<-r.fakeNamespace.started
	r.say("DELETE", w, "")
	if got := <-answer; !strings.Contains(got, "the session was closed") {
		t.Errorf("got %s", got)
	}
	if err := <-r.fakeNamespace.ended; err == nil {
		t.Error("the tool was not cancelled")
	}
}

func TestConcurrentClientsGetTheirOwnResults(t *testing.T) {
	r := start(t, nil)
	done := make(chan error, 16)
	for i := range 16 {
		w := r.join(who{token: fmt.Sprintf("user%d", i), workspace: "ws_one"})
		go func() {
			for n := range 30 {
				_, text := r.in(t).say("POST", w, progressBody(n, "t", n%3))
				if parts := events(text); n%3 > 0 && (len(parts) != n%3+1 || strings.Count(text, w.token+"/ws_one") != n%3+1) || n%3 == 0 && !strings.Contains(text, `"text":"`+w.token+`/ws_one"`) {
					done <- fmt.Errorf("%s, call %d: %s", w.token, n, text)
					return
				}
			}
			done <- nil
		}()
	}
	for range 16 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
