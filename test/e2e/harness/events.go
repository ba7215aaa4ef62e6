package harness

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

// EventReader reads GET /v1/events.
type EventReader struct {
	Header http.Header
	Events chan string // "name {data}", with the keys of the data sorted
}

// Listen opens the event stream and closes it when the test ends. It returns after the server has sent the headers, so
// no later event is missed.
func (s *Server) Listen(t *testing.T, headers ...string) *EventReader {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	// The stream has its own connection. This connection ends with the stream, and another request that reused it would
	// fail.
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("GET /v1/events: %v %v", resp, err)
	}
	l := &EventReader{Header: resp.Header, Events: make(chan string, 1000)}
	go func() {
		defer resp.Body.Close()
		defer close(l.Events)
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
				l.Events <- fmt.Sprintf("%s %s", name, value)
			}
		}
	}()
	return l
}

// Next returns the next event except heartbeats.
func (l *EventReader) Next(t *testing.T) string {
	t.Helper()
	return l.nextExcept(t, "heartbeat")
}

// NextOutcome returns the next event except heartbeats and install progress.
func (l *EventReader) NextOutcome(t *testing.T) string {
	t.Helper()
	return l.nextExcept(t, "heartbeat", "bundle.progress")
}

func (l *EventReader) nextExcept(t *testing.T, skipped ...string) string {
	t.Helper()
	for {
		select {
		case e, open := <-l.Events:
			if !open {
				t.Fatal("the event stream has ended")
			}
			if name, _, _ := strings.Cut(e, " "); !slices.Contains(skipped, name) {
				return e
			}
		case <-time.After(Timeout):
			t.Fatalf("no event within %v", Timeout)
		}
	}
}

// Expect fails the test unless the next events are exactly these, in this order.
func (l *EventReader) Expect(t *testing.T, events ...string) {
	t.Helper()
	for _, want := range events {
		if got := l.Next(t); got != want {
			t.Fatalf("event %s, want %s", got, want)
		}
	}
}

// OpenStream opens the GET stream of an MCP session. It stays open until the caller calls hangUp or the test ends.
func (s *Server) OpenStream(t *testing.T, session string) (status int, hangUp func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{session, WorkspaceHeader, AcceptHeader} {
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
