package cluster

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

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// attempt is one call and its result.
type attempt struct {
	id      string // also the X-Request-Id and the text that the worker records
	begun   time.Time
	status  int // 0 if the connection broke
	body    string
	session string // "" if the call has no session
}

// callers make calls through nginx until stop is done.
type callers struct {
	url  string
	stop context.Context

	mu  sync.Mutex
	all []attempt
}

// anyOf reports whether fits returns true for any call that the app answered.
func (c *callers) anyOf(fits func(attempt) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.all, func(a attempt) bool {
		return a.status == http.StatusOK && strings.Contains(a.body, "/apps/worker/") && fits(a)
	})
}

// send makes one call and records its result. It does not use stop as the context, because the call would then fail
// when stop is done.
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

func (c *callers) person(t *testing.T, name string) {
	for i := 0; c.stop.Err() == nil; i++ {
		id := fmt.Sprintf("%s-%d", name, i)
		c.send(t, id, "/v1/tools/call", fmt.Sprintf(`{"server":"worker","tool":"work","arguments":{"text":%q}}`, id), "")
	}
}

// client calls tools in a session. The first session must be on the server whose session IDs start with first. After a
// 404, client opens another session.
func (c *callers) client(t *testing.T, name, first string) {
	session := ""
	for i := 0; c.stop.Err() == nil; i++ {
		id := fmt.Sprintf("%s-%d", name, i)
		if session == "" {
			session = c.send(t, id, "/mcp", harness.Initialize, "", harness.WorkspaceHeader, harness.AcceptHeader).session
			if !strings.HasPrefix(session, first) {
				session = ""
			} else {
				first = ""
			}
			continue
		}
		if a := c.send(t, id, "/mcp", toolsCall("worker__work", fmt.Sprintf(`{"text":%q}`, id)), session, harness.WorkspaceHeader, harness.AcceptHeader); a.status == http.StatusNotFound {
			session = ""
		}
	}
}

// stateless calls tools through /mcp without sessions.
func (c *callers) stateless(t *testing.T, name string) {
	for i := 0; c.stop.Err() == nil; i++ {
		id := fmt.Sprintf("%s-%d", name, i)
		body, headers := statelessCall("worker__work", fmt.Sprintf(`{"text":%q}`, id))
		c.send(t, id, "/mcp", body, "", headers...)
	}
}
