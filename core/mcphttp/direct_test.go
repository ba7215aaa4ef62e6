package mcphttp

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// directBodies are what both ways are asked, beside the oracle's probes.
func directBodies() map[string]string {
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + params + `}`
	}
	list := func(params string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":` + params + `}`
	}
	return map[string]string{
		"a call":                           call(`{"name":"demo__echo","arguments":{"a":[1.50,{"b":null}]}}`),
		"a call without arguments":         call(`{"name":"demo__echo"}`),
		"arguments that are null":          call(`{"name":"demo__echo","arguments":null}`),
		"arguments that are a list":        call(`{"name":"demo__echo","arguments":[1]}`),
		"white space everywhere":           " {\r\n\t\"jsonrpc\" : \"2.0\" , \"id\" : \"a\\u0062\" ,\n \"method\" : \"tools/call\", \"params\" : { \"name\" : \"demo__echo\" , \"arguments\" : {} } } ",
		"an escaped name":                  call(`{"name":"demo__\u0065cho"}`),
		"an escaped key":                   call(`{"n\u0061me":"demo__echo"}`),
		"a broken escape in the name":      call(`{"name":"demo__echo\ud800"}`),
		"an empty name":                    call(`{"name":""}`),
		"no name":                          call(`{"arguments":{}}`),
		"no params":                        `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`,
		"a name that is a number":          call(`{"name":5}`),
		"a name that is null":              call(`{"name":null}`),
		"an unknown tool":                  call(`{"name":"demo__none"}`),
		"an unknown app":                   call(`{"name":"none__none"}`),
		"a name without an app":            call(`{"name":"echo"}`),
		"a tool that is hidden":            call(`{"name":"demo__hidden"}`),
		"a tool that fails":                call(`{"name":"demo__fail"}`),
		"a tool that panics":               call(`{"name":"demo__panic"}`),
		"an app that is away":              call(`{"name":"demo__away"}`),
		"arguments that do not fit":        call(`{"name":"demo__strict"}`),
		"a progress token":                 call(`{"name":"demo__progress","arguments":{"steps":3},"_meta":{"progressToken":"t"}}`),
		"a progress token that is large":   call(`{"name":"demo__progress","arguments":{"steps":2},"_meta":{"progressToken":12345678901234567890}}`),
		"a progress token that is a list":  call(`{"name":"demo__progress","arguments":{"steps":2},"_meta":{"progressToken":[1]}}`),
		"progress nobody asked for":        call(`{"name":"demo__progress","arguments":{"steps":2}}`),
		"a number no float holds":          call(`{"name":"demo__echo","_meta":{"x":1e999}}`),
		"a _meta that is null":             call(`{"name":"demo__echo","_meta":null}`),
		"a _meta with depth":               call(`{"name":"demo__echo","_meta":{"a":{"b":[1]}}}`),
		"a field of another revision":      call(`{"name":"demo__echo","requestState":5}`),
		"another field":                    call(`{"name":"demo__echo","x":1}`),
		"an id that is a fraction":         `{"jsonrpc":"2.0","id":1.50,"method":"tools/call","params":{"name":"demo__echo"}}`,
		"an id past 2^53":                  `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/list"}`,
		"a list":                           list(`{}`),
		"a list without params":            `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`,
		"a list with a _meta":              list(`{"_meta":{"progressToken":1}}`),
		"a list after a cursor":            list(`{"cursor":"ZGVtb19fZWNobw"}`),
		"a list after no cursor of ours":   list(`{"cursor":"x"}`),
		"a cursor that is empty":           list(`{"cursor":""}`),
		"a cursor that is null":            list(`{"cursor":null}`),
		"a cursor that is a number":        list(`{"cursor":1}`),
		"a list with another field":        list(`{"x":1}`),
		"a call named like a notification": `{"jsonrpc":"2.0","method":"notifications/tools/call","params":{"name":"demo__echo"}}`,
	}
}

// exactly is all of an answer but what differs from one request to the next.
func exactly(r *rig, w who, body string) string {
	resp, text := r.say("POST", w, body)
	resp.Header.Del("Date")
	var lines []string
	for name, values := range resp.Header {
		lines = append(lines, fmt.Sprintf("%s: %q", name, values))
	}
	slices.Sort(lines)
	return fmt.Sprintf("%d %q %d\n%s\n%s", resp.StatusCode, resp.TransferEncoding, resp.ContentLength, strings.Join(lines, "\n"), text)
}

func TestTheDirectWayAnswersAsTheSDKsWay(t *testing.T) {
	direct, slow, grounded := start(t, nil), start(t, func(o *Options) { o.SlowPath = true }), start(t, nil)
	grounded.hall.grounded = true
	for _, version := range []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		a, b, c := direct.join(alice, version), slow.join(alice, version), grounded.join(alice, version)
		bodies := directBodies()
		for _, p := range probes() {
			if (p.method == "" || p.method == http.MethodPost) && !p.bare && p.header == nil && !strings.HasPrefix(p.body, "[") {
				bodies["oracle: "+p.name] = p.body
			}
		}
		for name, body := range bodies {
			ours, theirs := exactly(direct.in(t), a, body), exactly(slow.in(t), b, body)
			if ours != theirs {
				t.Errorf("%s, %s:\ndirect %s\nSDK    %s", version, name, ours, theirs)
			}
			if grounded := exactly(grounded.in(t), c, body); grounded != theirs {
				t.Errorf("%s, %s:\ndirect, without a flight %s\nSDK    %s", version, name, grounded, theirs)
			}
		}
	}
}

func TestOnlyCallsTheSDKCouldNotFaultGoDirectly(t *testing.T) {
	bodies := directBodies()
	for name, want := range map[string]bool{
		"a call": true, "a call without arguments": true, "arguments that are a list": true, "white space everywhere": true, "an escaped key": true,
		"a progress token": true, "a tool that panics": true, "a list": true, "a list without params": true, "a list after a cursor": true,
		"no params": false, "no name": true, "a name that is a number": false, "a number no float holds": false, "a _meta with depth": false,
		"a progress token that is large": false, "another field": false, "a field of another revision": false, "a cursor that is null": false,
	} {
		messages, _, f := parse([]byte(bodies[name]))
		if f != nil || messages[0].isDirect() != want {
			t.Errorf("%s: direct is not %v (%+v)", name, want, f)
		}
	}
	modern := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol\/protocolVersion":"2026-07-28"}}}`
	if messages, _, f := parse([]byte(modern)); f != nil || messages[0].isDirect() {
		t.Errorf("a request of the revision without sessions is taken for one within: %+v", f)
	}
}

// both runs a test on each way.
func both(t *testing.T, run func(t *testing.T, r *rig)) {
	for _, way := range []string{"in flight", "direct", "through the SDK"} {
		t.Run(way, func(t *testing.T) {
			r := start(t, func(o *Options) { o.SlowPath = way == "through the SDK" })
			r.hall.grounded = way != "in flight"
			run(t, r)
		})
	}
}

func TestAClientCancelsItsOwnCallAndNoOther(t *testing.T) {
	both(t, func(t *testing.T, r *rig) {
		a, b := r.join(alice), r.join(alice)
		answers := make(chan string, 2)
		for _, w := range []who{a, b} {
			go func() {
				_, text := r.in(t).say("POST", w, callBody("same", "demo__wait", "{}"))
				answers <- text
			}()
			<-r.hall.started
		}
		if resp, text := r.say("POST", a, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"same"}}`); resp.StatusCode != 202 || text != "" {
			t.Errorf("the cancellation: %d %s", resp.StatusCode, text)
		}
		if got, want := <-answers, `{"jsonrpc":"2.0","error":{"code":-32800,"message":"the call was cancelled"},"id":"same"}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		close(r.hall.release)
		if got := <-answers; !strings.Contains(got, `"result"`) {
			t.Errorf("the other session's call: %s", got)
		}
	})
}

func TestAnIDInFlightIsRefusedUntilItsCallIsAnswered(t *testing.T) {
	both(t, func(t *testing.T, r *rig) {
		w := r.join(alice)
		answer := make(chan string, 1)
		go func() {
			_, text := r.in(t).say("POST", w, callBody(5, "demo__wait", "{}"))
			answer <- text
		}()
		<-r.hall.started
		for _, body := range []string{callBody(5, "demo__echo", "{}"), `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":5,"method":"ping"}`} {
			if resp, text := r.say("POST", w, body); resp.StatusCode != 400 || !strings.Contains(text, "already in flight") {
				t.Errorf("%s: %d %s", body, resp.StatusCode, text)
			}
		}
		close(r.hall.release)
		if got := <-answer; !strings.Contains(got, `"result"`) {
			t.Errorf("the first call: %s", got)
		}
		if resp, text := r.say("POST", w, callBody(5, "demo__echo", "{}")); resp.StatusCode != 200 || !strings.Contains(text, `"result"`) {
			t.Errorf("the id, free again: %d %s", resp.StatusCode, text)
		}
	})
}

func TestTheEndOfASessionEndsItsCalls(t *testing.T) {
	both(t, func(t *testing.T, r *rig) {
		w := r.join(alice)
		answer := make(chan string, 1)
		go func() {
			_, text := r.in(t).say("POST", w, callBody(5, "demo__wait", "{}"))
			answer <- text
		}()
		<-r.hall.started
		r.say("DELETE", w, "")
		if got := <-answer; !strings.Contains(got, "the session was closed") {
			t.Errorf("got %s", got)
		}
		if err := <-r.hall.ended; err == nil {
			t.Error("the tool was not cancelled")
		}
	})
}

func TestCallsOfManyClientsAtOnceReachTheirOwn(t *testing.T) {
	both(t, func(t *testing.T, r *rig) {
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
	})
}
