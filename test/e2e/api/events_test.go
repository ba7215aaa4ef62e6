package api

import (
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestEveryEventStreamGetsEveryEvent(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey))
	key := "Authorization: Bearer " + harness.APIKey
	first, second := s.Listen(t, key), s.Listen(t, key)
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "Connection": "keep-alive", "X-Content-Type-Options": "nosniff"} {
		if got := first.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if a := s.Do(t, "POST", "/v1/apps/install", map[string]any{"path": harness.GoBundle(t, "heard", harness.Plain)}, key); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if a := s.Do(t, "DELETE", "/v1/apps/heard", nil, key); a.Status != 200 || !strings.HasSuffix(a.Body, `"dataPath":"`+s.Home+`/apps/heard"}`) ||
		!strings.HasPrefix(a.Body, `{"name":"heard","uninstalled":true,"dataPreserved":true,`) {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	for _, l := range []*harness.EventReader{first, second} {
		l.Expect(t, `bundle.progress {"message":"@e2e/heard","name":"heard","stage":"starting"}`,
			`bundle.installed {"bundleName":"@e2e/heard","name":"heard","status":"running","ui":null}`, `bundle.uninstalled {"name":"heard"}`)
	}
}

func TestChangesToAppsAndConversationsAreAnnounced(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	l := s.Listen(t)
	expect := func(want string) {
		t.Helper()
		if got := l.NextOutcome(t); got != want {
			t.Fatalf("event %s, want %s", got, want)
		}
	}
	do := func(method, path string, body any) map[string]any {
		t.Helper()
		a := s.Do(t, method, path, body)
		if a.Status != 200 {
			t.Fatalf("%s %s: %d %s", method, path, a.Status, a.Body)
		}
		return a.Object(t)
	}
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "heard", harness.Plain)})
	expect(`bundle.installed {"bundleName":"@e2e/heard","name":"heard","status":"running","ui":null}`)
	do("POST", "/v1/apps/heard/stop", nil)
	expect(`bundle.stopped {"name":"heard"}`)
	do("POST", "/v1/apps/heard/start", nil)
	expect(`bundle.started {"name":"heard"}`)
	do("DELETE", "/v1/apps/heard", nil)
	expect(`bundle.uninstalled {"name":"heard"}`)
	made := do("POST", "/v1/conversations/import", `{"format":1,"conversation":{"title":"Before","metadata":{}},"messages":[]}`)
	id, _ := made["id"].(string)
	do("PATCH", "/v1/conversations/"+id, map[string]any{"title": "After"})
	expect(`conversation.updated {"id":"` + id + `","title":"After"}`)
	do("DELETE", "/v1/conversations/"+id, nil)
	expect(`conversation.deleted {"id":"` + id + `"}`)
}

func TestTheHeartbeatIsSentEvery30Seconds(t *testing.T) {
	t.Parallel()
	before := time.Now() // the first interval begins before the server reports that it is listening
	l := harness.Serve(t).Listen(t)
	started := time.Now()
	select {
	case e := <-l.Events:
		at := strings.TrimSuffix(strings.TrimPrefix(e, `heartbeat {"timestamp":"`), `"}`)
		beat, err := time.Parse(time.RFC3339, at)
		if most, least := beat.Sub(before), beat.Sub(started); err != nil || most < 28*time.Second || least > 45*time.Second {
			t.Errorf("event %s, %v to %v after the start: %v", e, least, most, err)
		}
	case <-time.After(harness.Timeout):
		t.Errorf("no heartbeat within %v", harness.Timeout)
	}
}
