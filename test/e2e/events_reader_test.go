package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// listener reads GET /v1/events.
type listener struct {
	header http.Header
	events chan string // "name {data}", its data's keys in order
}

// listen opens the event stream; it is closed when the test ends. It returns when the server has
// sent its headers, so that nothing that happens afterwards is missed.
func (s *server) listen(t *testing.T, headers ...string) *listener {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("GET /v1/events: %v %v", resp, err)
	}
	l := &listener{header: resp.Header, events: make(chan string, 1000)}
	go func() {
		defer resp.Body.Close()
		defer close(l.events)
		var name string
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if value, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				name = value
			}
			if value, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var data map[string]any
				if json.Unmarshal([]byte(value), &data) != nil {
					value = "not JSON: " + value
				} else {
					ordered, _ := json.Marshal(data)
					value = string(ordered)
				}
				l.events <- fmt.Sprintf("%s %s", name, value)
			}
		}
	}()
	return l
}

// next is the next event but for heartbeats.
func (l *listener) next(t *testing.T) string {
	t.Helper()
	return l.nextExcept(t, "heartbeat")
}

// nextOutcome is the next event but for heartbeats and the progress of installs.
func (l *listener) nextOutcome(t *testing.T) string {
	t.Helper()
	return l.nextExcept(t, "heartbeat", "bundle.progress")
}

func (l *listener) nextExcept(t *testing.T, skipped ...string) string {
	t.Helper()
	for {
		select {
		case e, open := <-l.events:
			if !open {
				t.Fatal("the event stream has ended")
			}
			if name, _, _ := strings.Cut(e, " "); !slices.Contains(skipped, name) {
				return e
			}
		case <-time.After(patience):
			t.Fatalf("no event within %v", patience)
		}
	}
}

// expect reads exactly these events, in this order.
func (l *listener) expect(t *testing.T, events ...string) {
	t.Helper()
	for _, want := range events {
		if got := l.next(t); got != want {
			t.Fatalf("event %s, want %s", got, want)
		}
	}
}

// stream opens the GET stream of an MCP session. It stays open until hangUp or the test's end.
func (s *server) stream(t *testing.T, session string) (status int, hangUp func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{session, inWorkspace, takesBoth} {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp.StatusCode, cancel
}
