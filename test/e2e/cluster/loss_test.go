package cluster

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func testServerLoss(t *testing.T, d *cluster) {
	const of = 8 // the number of callers of each kind
	victim, lasting := d.servers[1], d.proxy.SessionHeader(t)
	for !strings.HasPrefix(lasting, "Mcp-Session-Id: b-") {
		lasting = d.proxy.SessionHeader(t)
	}
	stop, end := context.WithCancel(t.Context())
	defer end()
	c := &callers{url: d.nginx.URL, stop: stop}
	var calling sync.WaitGroup
	for i := range of {
		calling.Go(func() { c.person(t, fmt.Sprint("person", i)) })
		calling.Go(func() { c.client(t, fmt.Sprint("client", i), serverNames[i%3]+"-") })
		calling.Go(func() { c.stateless(t, fmt.Sprint("stateless", i)) })
	}
	ofVictim := func(a attempt) bool { return strings.HasPrefix(a.session, "b-") }
	<-time.After(time.Second)
	if !testkit.Within(harness.Timeout, func() bool { return c.anyOf(ofVictim) }) {
		t.Error("no call uses a session of the server that will be killed")
	}
	victim.Kill()
	dead := time.Now()
	<-time.After(time.Second)
	testkit.Within(harness.Timeout, func() bool { // checkCalls fails if this times out
		return c.anyOf(func(a attempt) bool { return a.begun.After(dead) && ofVictim(a) })
	})
	end()
	calling.Wait()
	d.checkCalls(t, c.all, dead)

	a := d.proxy.Do(t, "POST", "/mcp", harness.Ping, harness.WorkspaceHeader, harness.AcceptHeader, lasting)
	if a.Status != 200 {
		t.Errorf("no server has taken over a session of the dead server: %d %s", a.Status, a.Body)
	}
	for _, id := range []string{"b-NEVERWASSUCHASESSION000000", "NEVERWASSUCHASESSION00000000"} {
		if a := d.proxy.Do(t, "POST", "/mcp", harness.Ping, harness.WorkspaceHeader, harness.AcceptHeader, "Mcp-Session-Id: "+id); a.Status != 404 || a.Body != harness.SessionNotFound("not_found") {
			t.Errorf("session %s: %d %s", id, a.Status, a.Body)
		}
	}
	if left := harness.Survivors(harness.ProcessesFor(victim.Home), 20*time.Second); len(left) > 0 {
		t.Errorf("the killed server left these processes behind:\n%v", left)
	}
}

// checkCalls checks that only calls in progress on the dead server failed, and that no call was repeated.
func (d *cluster) checkCalls(t *testing.T, all []attempt, dead time.Time) {
	t.Helper()
	sent := map[string]string{}
	for _, f := range d.nginx.Forwarded(t) {
		sent[f.ID] = f.Upstream
	}
	victim := strings.TrimPrefix(d.servers[1].URL, "http://")
	failed, moved := 0, 0
	answered := map[string]int{}
	for _, a := range all {
		late := a.begun.After(dead)
		switch {
		case a.status == http.StatusOK && strings.Contains(a.body, "/apps/worker/"):
			if who := d.serverOf(t, a.body); late {
				answered[who]++
				if strings.HasPrefix(a.session, "b-") {
					moved++
				}
			}
		case a.status == http.StatusOK && a.session != "" && strings.Contains(a.body, "protocolVersion"):
		default:
			failed++
			if late || sent[a.id] != victim {
				t.Errorf("call %s began %v after the server died, went to %q, and returned %d %s", a.id, a.begun.Sub(dead), sent[a.id], a.status, a.body)
			}
		}
	}
	t.Logf("of %d calls, %d failed and %d were answered in the dead server's sessions; afterwards, %v answered", len(all), failed, moved, answered)
	if failed == 0 || failed > 24 {
		t.Errorf("%d calls failed, but between 1 and 24 must fail, because 24 are in progress on three servers", failed)
	}
	if moved == 0 || answered["a"] == 0 || answered["c"] == 0 || answered["b"] > 0 {
		t.Errorf("%d calls were answered in the dead server's sessions; afterwards, %v answered", moved, answered)
	}
	for id, times := range d.workDone("worker") {
		if times > 1 && slices.ContainsFunc(all, func(a attempt) bool { return a.id == id }) {
			t.Errorf("call %s was made %d times", id, times)
		}
	}
}
