package chat

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// Deleting an API key ends every stream opened with it, and also the chat run and its tool call (docs/api.md 2.6).
func TestARevokedKeyEndsItsStreamsAndItsRun(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	s := harness.Serve(t, harness.Models(p, "anthropic"), harness.Env("SERVICE_API_KEY="+harness.APIKey))
	owner := "Authorization: Bearer " + harness.APIKey
	if a := s.Do(t, "POST", "/v1/apps/install", map[string]any{"path": harness.GoBundle(t, "go", harness.Plain)}, owner); a.Status != 200 {
		t.Fatalf("install: %d %s", a.Status, a.Body)
	}
	gate := s.SharedFile("go", "gate")
	p.Say(t,
		`{"match":{"hasToolResult":false},"response":{"content":"I begin.","toolCalls":[{"name":"go__last","arguments":{"text":`+harness.Quote(gate)+`}}]}}`,
		`{"match":{},"response":{"content":"Ok."}}`)
	made := s.Do(t, "POST", "/v1/keys", `{"name":"k","role":"admin"}`, owner).Object(t)
	key, _ := made["key"].(string)
	open := func(method, path, body string) (ended chan string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 200 {
			t.Fatalf("%s: %d", path, resp.StatusCode)
		}
		ended = make(chan string, 1)
		go func() {
			defer resp.Body.Close()
			output, _ := io.ReadAll(resp.Body)
			ended <- string(output)
		}()
		return ended
	}
	streams := map[string]chan string{
		"events": open("GET", "/v1/events", ""), "log": open("GET", "/v1/apps/go/logs?follow=true", ""), "chat": open("POST", "/v1/chat/stream", `{"message":"go"}`),
	}
	if !testkit.Within(harness.Timeout, harness.Exists(gate+".begun")) {
		t.Fatal("the tool call did not begin")
	}
	for name, ended := range streams {
		if len(ended) > 0 {
			t.Fatalf("%s ended before the key was revoked: %s", name, <-ended)
		}
	}
	if a := s.Do(t, "DELETE", "/v1/keys/"+made["id"].(string), nil, owner); a.Status != 200 {
		t.Fatalf("revoking the key: %d %s", a.Status, a.Body)
	}
	output := map[string]string{}
	for name, ended := range streams {
		if !testkit.Within(harness.Timeout, func() bool { return len(ended) > 0 }) {
			t.Errorf("the stream %s continues after its key was revoked", name)
			continue
		}
		output[name] = <-ended
	}
	if !strings.Contains(output["chat"], `"stopReason":"cancelled","stopMessage":"The run ended because its API key was revoked`) || !testkit.Within(harness.Timeout, harness.Exists(gate+".cancelled")) {
		t.Errorf("the run ended with %s; the tool call was cancelled: %v", output["chat"], harness.Exists(gate+".cancelled")())
	}
}
