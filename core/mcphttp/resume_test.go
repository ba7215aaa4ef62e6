package mcphttp

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// nextEvent returns the ID and the data of the next event.
func nextEvent(t *testing.T, lines *bufio.Scanner) (id, data string) {
	t.Helper()
	for lines.Scan() {
		switch text := lines.Text(); {
		case strings.HasPrefix(text, "id: "):
			id = text[4:]
		case strings.HasPrefix(text, "data: "):
			data = text[6:]
		case text == "" && id != "":
			return id, data
		}
	}
	t.Fatalf("the stream ended: %v", lines.Err())
	return "", ""
}

func TestAClientWhoseConnectionBrokeResumesWhereItWas(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	resp := r.ask("POST", w, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"demo__slow","arguments":{},"_meta":{"progressToken":"p"}}}`)
	lines := bufio.NewScanner(resp.Body)
	if id, data := nextEvent(t, lines); data != "" || !strings.HasSuffix(id, ".0") {
		t.Errorf("the first event should have only an id: %s %s", id, data)
	}
	seen, data := nextEvent(t, lines)
	if !strings.Contains(data, `"progress":1`) {
		t.Fatalf("the first event is %s", data)
	}
	resp.Body.Close() // the connection breaks
	close(r.fakeNamespace.release)
	<-r.fakeNamespace.ended
	for range 2 { // the resumed connection may break too, which must make no difference
		again, body := r.say("GET", w, "", "Last-Event-ID: "+seen)
		if got := events(body); again.StatusCode != 200 || len(got) != 2 || !strings.Contains(got[0], `"progress":2`) || !strings.Contains(got[1], `"id":5,"result"`) {
			t.Fatalf("%d %s", again.StatusCode, body)
		}
	}
}

func TestARunningCallContinuesOnAReconnectedClientsStream(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	resp := r.ask("POST", w, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"demo__slow","arguments":{},"_meta":{"progressToken":"p"}}}`)
	seen, _ := nextEvent(t, bufio.NewScanner(resp.Body))
	resp.Body.Close()
	again := r.ask("GET", w, "", "Last-Event-ID: "+seen)
	defer again.Body.Close()
	lines := bufio.NewScanner(again.Body)
	if _, data := nextEvent(t, lines); !strings.Contains(data, `"progress":1`) {
		t.Errorf("got %s", data)
	}
	close(r.fakeNamespace.release)
	if _, data := nextEvent(t, lines); !strings.Contains(data, `"progress":2`) {
		t.Errorf("got %s", data)
	}
	if _, data := nextEvent(t, lines); !strings.Contains(data, `"id":5,"result"`) {
		t.Errorf("got %s", data)
	}
	if lines.Scan() {
		t.Errorf("the stream continues after the response: %s", lines.Text())
	}
}

func TestTheGetStreamResumesWhereItWas(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	r.say("POST", w, `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`)
	resp, lines := r.listen(w)
	seen, data := nextEvent(t, lines)
	if data != "" {
		t.Errorf("the first event is %s", data)
	}
	resp.Body.Close()
	for r.endpoint.live.Find([]byte(w.session)).Streaming() {
		<-time.After(time.Millisecond)
	}
	for i := range 3 {
		r.fakeNamespace.app.notify("notifications/message", fmt.Sprintf(`{"level":"info","data":%d}`, i))
	}
	again := r.ask("GET", w, "", "Last-Event-ID: "+seen)
	defer again.Body.Close()
	lines = bufio.NewScanner(again.Body)
	if id, data := nextEvent(t, lines); id != seen || data != "" {
		t.Errorf("got %s %s", id, data)
	}
	for i := range 3 {
		if _, data := nextEvent(t, lines); !strings.HasSuffix(data, fmt.Sprintf(`"data":%d}}`, i)) {
			t.Errorf("event %d is %s", i, data)
		}
	}
}

func TestAnUnknownLastEventIDIsRefused(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	for _, id := range []string{"nonsense", "1", "-1.0", "7.1", "99999999999999999999.1"} {
		if resp, body := r.say("GET", w, "", "Last-Event-ID: "+id); resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "Last-Event-ID") {
			t.Errorf("%s: %d %s", id, resp.StatusCode, body)
		}
	}
	other := who{token: "bob", workspace: "ws_one", session: w.session}
	if resp, _ := r.say("GET", other, "", "Last-Event-ID: 1.1"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("another user's events: %d", resp.StatusCode)
	}
}

func TestOlderRevisionsGetNoEmptyEvents(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice, "2025-06-18")
	resp := r.ask("POST", w, progressBody(1, "p", 1))
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if strings.Contains(string(body), "data: \n") || !strings.HasPrefix(string(body), "id: ") {
		t.Errorf("%s", body)
	}
}
