package e2e

import (
	"strings"
	"testing"
	"time"
)

func TestEveryListenerHearsEveryEvent(t *testing.T) {
	t.Parallel()
	s := serve(t, env("SERVICE_API_KEY="+apiKey))
	key := "Authorization: Bearer " + apiKey
	first, second := s.listen(t, key), s.listen(t, key)
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "Connection": "keep-alive", "X-Content-Type-Options": "nosniff"} {
		if got := first.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if a := s.do(t, "POST", "/v1/apps/install", map[string]any{"path": goBundle(t, "heard", plain)}, key); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := s.do(t, "DELETE", "/v1/apps/heard", nil, key); a.status != 200 || !strings.HasSuffix(a.body, `"dataPath":"`+s.home+`/apps/heard"}`) ||
		!strings.HasPrefix(a.body, `{"name":"heard","uninstalled":true,"dataPreserved":true,`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, l := range []*listener{first, second} {
		l.expect(t, `bundle.progress {"message":"@e2e/heard","name":"heard","stage":"starting"}`,
			`bundle.installed {"bundleName":"@e2e/heard","name":"heard","status":"running","ui":null}`, `bundle.uninstalled {"name":"heard"}`)
	}
}

func TestTheHeartbeatComesEach30Seconds(t *testing.T) {
	t.Parallel()
	l := serve(t).listen(t)
	started := time.Now()
	select {
	case e := <-l.events:
		at := strings.TrimSuffix(strings.TrimPrefix(e, `heartbeat {"timestamp":"`), `"}`)
		beat, err := time.Parse(time.RFC3339, at)
		if gap := beat.Sub(started); err != nil || gap < 28*time.Second || gap > 32*time.Second {
			t.Errorf("event %s, %v after the start: %v", e, gap, err)
		}
	case <-time.After(35 * time.Second):
		t.Error("no heartbeat within 35 s")
	}
}
