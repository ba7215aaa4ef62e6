package httpapi

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
)

// auditor keeps records, or refuses them.
type auditor struct {
	mu      sync.Mutex
	records []core.AuditRecord
	err     error
}

func (a *auditor) Record(_ context.Context, r core.AuditRecord) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.records = append(a.records, r)
	return a.err
}

func TestChangesLoginsAndRefusalsAreRecorded(t *testing.T) {
	log := &auditor{}
	h := open(t, newAccess(), func(o *Options) { o.Audit = log })
	for _, c := range []struct {
		call    call
		want    []string // action, outcome of each record
		unknown bool
	}{
		{call: call{method: "POST", path: "/v1/apps/install", body: `{"path":"/b"}`}, want: []string{"POST /v1/apps/install begun", "POST /v1/apps/install ok"}},
		{call: call{method: "POST", path: "/v1/auth/login", body: `{"key":"wrong-key"}`, header: map[string]string{"Authorization": anonymous}},
			want: []string{"POST /v1/auth/login begun", "POST /v1/auth/login unauthenticated"}, unknown: true},
		{call: call{method: "GET", path: "/v1/apps", header: map[string]string{"Authorization": "Bearer forged"}}, want: []string{"GET /v1/apps unauthenticated"}, unknown: true},
		{call: call{method: "GET", path: "/v1/apps"}},
	} {
		log.records = nil
		h.do(t, c.call)
		var got []string
		for _, r := range log.records {
			got = append(got, r.Action+" "+r.Outcome)
			if r.RequestID == "" || r.Address == "" || (r.Actor == "") != (c.unknown || r.Outcome == "begun") {
				t.Errorf("%s %s: %+v", c.call.method, c.call.path, r)
			}
		}
		if strings.Join(got, "; ") != strings.Join(c.want, "; ") {
			t.Errorf("%s %s: recorded %q, want %q", c.call.method, c.call.path, got, c.want)
		}
	}
}

func TestWhatCannotBeRecordedIsNotDone(t *testing.T) {
	log := &auditor{err: core.Errorf(core.CodeUnavailable, "the audit log cannot be written")}
	h := open(t, newAccess(), func(o *Options) { o.Audit = log })
	if r := h.do(t, call{method: "POST", path: "/v1/apps/install", body: `{"path":"/b"}`}); r.StatusCode != 503 {
		t.Errorf("install: %d %s", r.StatusCode, r.body)
	}
	if len(log.records) != 1 {
		t.Errorf("%d records, want the one that failed", len(log.records))
	}
	if r := h.do(t, call{method: "GET", path: "/v1/apps"}); r.StatusCode != 200 {
		t.Errorf("a list: %d", r.StatusCode)
	}
}

func TestRefusalsOfMountedEndpointsAreRecorded(t *testing.T) {
	log := &auditor{}
	h := open(t, newAccess(), func(o *Options) {
		o.Audit = log
		o.Mounts = []func(Router){func(r Router) {
			r.Post("/mcp", func(c *fiber.Ctx) error { return c.SendStatus(c.QueryInt("status")) })
		}}
	})
	for status, want := range map[string]string{"401": "POST /mcp unauthenticated", "403": "POST /mcp forbidden", "200": "", "404": ""} {
		log.records = nil
		h.do(t, call{method: "POST", path: "/mcp?status=" + status, body: "{}"})
		var got string
		for _, r := range log.records {
			got += r.Action + " " + r.Outcome
			if r.Address == "" || r.RequestID == "" {
				t.Errorf("%s: %+v", status, r)
			}
		}
		if got != want {
			t.Errorf("%s: recorded %q, want %q", status, got, want)
		}
	}
}
