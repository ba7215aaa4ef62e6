package apiclient

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func TestARequestCarriesKeyAndWorkspace(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"key": r.Header.Get("Authorization"), "workspace": r.Header.Get("X-Workspace-Id"), "query": r.URL.RawQuery})
	}))
	defer s.Close()
	c := &Client{Server: s.URL + "/", Key: "k", Workspace: "ws_a"}
	var got map[string]string
	if err := c.Get(t.Context(), "/v1/x", map[string][]string{"a": {"b c"}}, &got); err != nil {
		t.Fatal(err)
	}
	if got["key"] != "Bearer k" || got["workspace"] != "ws_a" || got["query"] != "a=b+c" {
		t.Error(got)
	}
}

func TestErrorsTellTheUserWhatToDo(t *testing.T) {
	for response, want := range map[string]string{
		`{"error":"not_found","message":"app \"x\" is not installed"}`: `app "x" is not installed`,
		`{"error":"feature_disabled"}`:                                 "feature disabled",
		`{"error":"credentials_required","message":"settings are missing","details":{"missing":[{"name":"KEY","title":"The key"}]}}`: "--env KEY=...   The key",
		`plain text`: "plain text",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			_, _ = w.Write([]byte(response))
		}))
		err := (&Client{Server: s.URL}).Get(t.Context(), "/", nil, nil)
		s.Close()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", response, err, want)
		}
	}
	err := (&Client{Server: "http://127.0.0.1:1"}).Get(t.Context(), "/", nil, nil)
	if err == nil || !strings.Contains(err.Error(), "cannot reach the server at http://127.0.0.1:1") || !strings.Contains(err.Error(), "ropewalk up") || !strings.Contains(err.Error(), "ropewalk login ADDRESS") {
		t.Error(err)
	}
}

func TestAProxysErrorIsNotMistakenForTheServers(t *testing.T) {
	for body, want := range map[string]string{
		"":                                 "responded with 503 Service Unavailable, but not from a Ropewalk server",
		"<h1>503 Service Unavailable</h1>": "run `ropewalk doctor` on the server's machine",
		`{"error":"unavailable","message":"the database is unavailable"}`: "the database is unavailable",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(body))
		}))
		err := (&Client{Server: s.URL}).Get(t.Context(), "/", nil, nil)
		s.Close()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", body, err, want)
		}
	}
}

func TestAnInterruptedRequestDoesNotBlameTheServer(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stop(errors.New("interrupt signal received"))
		<-r.Context().Done()
	}))
	defer s.Close()
	err := (&Client{Server: s.URL}).Get(ctx, "/", nil, nil)
	if err == nil || err.Error() != "stopped before the server at "+s.URL+" responded: interrupt signal received" {
		t.Error(err)
	}
}

func TestEventsAreParsed(t *testing.T) {
	var got []string
	stream := ": comment\r\nevent: a\r\ndata: {\"x\":1}\r\n\r\nevent: b\ndata: one\ndata: two\n\nevent: empty\n\nevent: cut\ndata: 1\n"
	err := readEvents(strings.NewReader(stream), func(e Event) error {
		got = append(got, e.Name+" "+string(e.Data))
		return nil
	})
	if want := []string{`a {"x":1}`, "b one\ntwo"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q %v", got, err)
	}
	stop := errors.New("stop")
	if err := readEvents(strings.NewReader(stream), func(Event) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}
