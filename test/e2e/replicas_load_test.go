package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// attempt is one call of the load: what became of it, and when.
type attempt struct {
	id      string // also its X-Request-Id, and what its worker writes down
	begun   time.Time
	status  int // 0 when the connection broke
	body    string
	session string // "" for none
}

// callers are those who call through nginx until they are notified to stop.
type callers struct {
	url  string
	stop context.Context

	mu  sync.Mutex
	all []attempt
}

// send sends one call and notes what became of it. It goes on when stop has ended, so that nothing
// fails for that.
func (c *callers) send(t *testing.T, id, path, body, session string, headers ...string) attempt {
	t.Helper()
	a := attempt{id: id, begun: time.Now(), session: session}
	req, err := http.NewRequestWithContext(t.Context(), "POST", c.url+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return a
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", id)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	if resp, err := http.DefaultClient.Do(req); err == nil {
		raw, broke := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if broke == nil {
			a.status, a.body = resp.StatusCode, string(raw)
		}
		if path == "/mcp" && session == "" {
			a.session = resp.Header.Get("Mcp-Session-Id")
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, a)
	return a
}

// person calls /v1.
func (c *callers) person(t *testing.T, name string) {
	for i := 0; c.stop.Err() == nil; i++ {
		id := fmt.Sprintf("%s-%d", name, i)
		c.send(t, id, "/v1/tools/call", fmt.Sprintf(`{"server":"worker","tool":"work","arguments":{"text":%q}}`, id), "")
	}
}

// client calls in a session, first in one of the server that is named, and opens another when it is
// notified that there is none.
func (c *callers) client(t *testing.T, name, first string) {
	session := ""
	for i := 0; c.stop.Err() == nil; i++ {
		id := fmt.Sprintf("%s-%d", name, i)
		if session == "" {
			session = c.send(t, id, "/mcp", initialize, "", inWorkspace, takesBoth).session
			if !strings.HasPrefix(session, first) {
				session = ""
			} else {
				first = ""
			}
			continue
		}
		if a := c.send(t, id, "/mcp", toolsCall("worker__work", fmt.Sprintf(`{"text":%q}`, id)), session, inWorkspace, takesBoth); a.status == http.StatusNotFound {
			session = ""
		}
	}
}

// stateless calls without a session.
func (c *callers) stateless(t *testing.T, name string) {
	for i := 0; c.stop.Err() == nil; i++ {
		id := fmt.Sprintf("%s-%d", name, i)
		body, headers := statelessCall("worker__work", fmt.Sprintf(`{"text":%q}`, id))
		c.send(t, id, "/mcp", body, "", headers...)
	}
}

func (*deployment) loses(t *testing.T, d *deployment) {
	const of = 8 // callers of each kind
	victim, lasting := d.replicas[1], d.front.open(t)
	for !strings.HasPrefix(lasting, "Mcp-Session-Id: b-") {
		lasting = d.front.open(t)
	}
	stop, end := context.WithCancel(t.Context())
	defer end()
	c := &callers{url: d.nginx.URL, stop: stop}
	var calling sync.WaitGroup
	for i := range of {
		calling.Go(func() { c.person(t, fmt.Sprint("person", i)) })
		calling.Go(func() { c.client(t, fmt.Sprint("client", i), replicaNames[i%3]+"-") })
		calling.Go(func() { c.stateless(t, fmt.Sprint("stateless", i)) })
	}
	<-time.After(time.Second)
	victim.kill()
	dead := time.Now()
	<-time.After(time.Second)
	end()
	calling.Wait()
	d.judge(t, c.all, dead)

	a := d.front.do(t, "POST", "/mcp", ping, inWorkspace, takesBoth, lasting)
	if a.status != 404 || a.body != notFound("unavailable") {
		t.Errorf("a session of the dead: %d %s", a.status, a.body)
	}
	for _, id := range []string{"b-NEVERWASSUCHASESSION000000", "NEVERWASSUCHASESSION00000000"} {
		if a := d.front.do(t, "POST", "/mcp", ping, inWorkspace, takesBoth, "Mcp-Session-Id: "+id); a.status != 404 || a.body != notFound("not_found") {
			t.Errorf("session %s: %d %s", id, a.status, a.body)
		}
	}
	if left := survivors(mentioning(victim.home), time.Second); len(left) > 0 {
		t.Errorf("of the server that was killed are left:\n%v", left)
	}
}

// judge says which calls failed: only those that were on their way in the server that died at dead,
// and nobody repeated one.
func (d *deployment) judge(t *testing.T, all []attempt, dead time.Time) {
	t.Helper()
	sent := map[string]string{}
	for _, f := range d.nginx.Forwarded(t) {
		sent[f.ID] = f.Upstream
	}
	victim := strings.TrimPrefix(d.replicas[1].url, "http://")
	failed, reopened := 0, 0
	answered := map[string]int{}
	for _, a := range all {
		late := a.begun.After(dead)
		switch {
		case a.status == http.StatusOK && strings.Contains(a.body, "/apps/worker/"):
			if who := d.whose(t, a.body); late {
				answered[who]++
			}
		case a.status == http.StatusOK && a.session != "" && strings.Contains(a.body, "protocolVersion"):
		case a.status == http.StatusNotFound && a.body == notFound("unavailable") && strings.HasPrefix(a.session, "b-") && !strings.HasPrefix(a.id, "person"):
			reopened++
		default:
			failed++
			if late || sent[a.id] != victim {
				t.Errorf("call %s, begun %v after the death, sent to %q, was answered %d %s", a.id, a.begun.Sub(dead), sent[a.id], a.status, a.body)
			}
		}
	}
	t.Logf("of %d calls %d failed; %d sessions were opened anew; afterwards %v answered", len(all), failed, reopened, answered)
	if failed == 0 || failed > 24 {
		t.Errorf("%d calls failed, of 24 in flight on three servers: that shows nothing", failed)
	}
	if reopened == 0 || answered["a"] == 0 || answered["c"] == 0 || answered["b"] > 0 {
		t.Errorf("%d sessions were opened anew, and afterwards %v answered", reopened, answered)
	}
	for id, times := range d.did("worker") {
		if times > 1 && slices.ContainsFunc(all, func(a attempt) bool { return a.id == id }) {
			t.Errorf("call %s was made %d times", id, times)
		}
	}
}
