package httpapi

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/internal/testkit/fakes"
)

func TestChangesLoginsAndRefusalsAreRecorded(t *testing.T) {
	log := &fakes.Audit{}
	h := open(t, newAccess(), func(o *Options) { o.Audit = log })
	for _, c := range []struct {
		call    call
		want    []string // "action outcome" of each record
		unknown bool
	}{
		{call: call{method: "POST", path: "/v1/apps/install", body: `{"path":"/b"}`}, want: []string{"POST /v1/apps/install begun", "POST /v1/apps/install ok"}},
		{call: call{method: "POST", path: "/v1/auth/login", body: `{"key":"wrong-key"}`, header: map[string]string{"Authorization": anonymous}},
			want: []string{"POST /v1/auth/login begun", "POST /v1/auth/login unauthenticated"}, unknown: true},
		{call: call{method: "GET", path: "/v1/apps", header: map[string]string{"Authorization": "Bearer forged"}}, want: []string{"GET /v1/apps unauthenticated"}, unknown: true},
		{call: call{method: "GET", path: "/v1/apps"}},
	} {
		h.do(t, c.call)
		var got []string
		for _, r := range log.Take() {
			got = append(got, r.Action+" "+r.Outcome)
			if r.RequestID == "" || r.Address == "" || (r.Actor == "") != c.unknown {
				t.Errorf("%s %s: %+v", c.call.method, c.call.path, r)
			}
		}
		if strings.Join(got, "; ") != strings.Join(c.want, "; ") {
			t.Errorf("%s %s: recorded %q, want %q", c.call.method, c.call.path, got, c.want)
		}
	}
}

func TestDryRunsAreMarkedInTheAuditTrail(t *testing.T) {
	log := &fakes.Audit{}
	h := open(t, newAccess(), func(o *Options) { o.Audit = log })
	for body, want := range map[string]string{
		`{"mcpServers":{"a":{"command":"a"}},"dryRun":true}`: "dry run",
		`{"mcpServers":{"a":{"command":"a"}}}`:               "",
	} {
		h.do(t, call{method: "POST", path: "/v1/apps/import", body: body})
		if all := log.Take(); len(all) != 2 || all[1].Outcome != "ok" || all[1].Target != want {
			t.Errorf("%s: recorded %+v, want the target %q", body, all, want)
		}
	}
}

func TestAnActionThatCannotBeRecordedIsNotPerformed(t *testing.T) {
	log := &fakes.Audit{}
	log.Fail(core.Errorf(core.CodeUnavailable, "cannot write to the audit log"))
	h := open(t, newAccess(), func(o *Options) { o.Audit = log })
	if r := h.do(t, call{method: "POST", path: "/v1/apps/install", body: `{"path":"/b"}`}); r.StatusCode != 503 {
		t.Errorf("install: %d %s", r.StatusCode, r.body)
	}
	if n := len(log.Take()); n != 1 {
		t.Errorf("%d records, want only the failed one", n)
	}
	if r := h.do(t, call{method: "GET", path: "/v1/apps"}); r.StatusCode != 200 {
		t.Errorf("a list: %d", r.StatusCode)
	}
}

func TestRefusalsByMountedEndpointsAreRecorded(t *testing.T) {
	log := &fakes.Audit{}
	h := open(t, newAccess(), func(o *Options) {
		o.Audit = log
		o.Mounts = []func(Router){func(r Router) {
			r.Post("/mcp", func(c *fiber.Ctx) error { return c.SendStatus(c.QueryInt("status")) })
		}}
	})
	for status, want := range map[string]string{"401": "POST /mcp unauthenticated", "403": "POST /mcp forbidden", "200": "", "404": ""} {
		h.do(t, call{method: "POST", path: "/mcp?status=" + status, body: "{}"})
		var got string
		for _, r := range log.Take() {
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

// trail is an audit trail that records its queries.
type trail struct {
	mu      sync.Mutex
	queries []core.AuditQuery
	err     error
}

func (l *trail) Records(_ context.Context, q core.AuditQuery) (core.AuditPage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queries = append(l.queries, q)
	return core.AuditPage{Records: []core.AuditRecord{{Time: time.Unix(1, 0).UTC(), Actor: "usr_a", Action: "tools.call", Outcome: "ok"}}, Next: "42"}, l.err
}

func TestAdminsReadOnlyTheAuditRecordsThatTheyMaySee(t *testing.T) {
	a := newAccess()
	a.user("org", core.RoleAdmin, core.Workspace{ID: "ws_second", Role: core.RoleMember})
	a.user("lead", core.RoleMember, core.Workspace{ID: "ws_second", Role: core.RoleAdmin})
	a.user("member", core.RoleMember, core.Workspace{ID: "ws_second", Role: core.RoleMember})
	log := &trail{}
	h := open(t, a, func(o *Options) { o.AuditTrail = log })
	for _, c := range []struct {
		who, query string
		status     int
		workspace  string // the workspace whose records were read
	}{
		{"org", "", 200, ""},
		{"org", "?workspaceId=ws_other", 200, "ws_other"},
		{"lead", "", 200, "ws_second"},
		{"lead", "?workspaceId=ws_second", 200, "ws_second"},
		{"lead", "?workspaceId=ws_other", 403, ""},
		{"member", "", 403, ""},
		{"member", "?workspaceId=ws_second", 403, ""},
	} {
		log.queries = nil
		r := h.do(t, call{method: "GET", path: "/v1/audit" + c.query, header: map[string]string{"Authorization": "Bearer " + c.who}})
		if r.StatusCode != c.status || (len(log.queries) == 1) != (c.status == 200) {
			t.Errorf("%s%s: %d %s, %d queries", c.who, c.query, r.StatusCode, r.body, len(log.queries))
			continue
		}
		if c.status == 200 && log.queries[0].Workspace != c.workspace {
			t.Errorf("%s%s read the records of %q", c.who, c.query, log.queries[0].Workspace)
		}
	}
}

func TestTheAuditTrailIsFilteredAndPaged(t *testing.T) {
	log := &trail{}
	h := open(t, newAccess(), func(o *Options) { o.AuditTrail = log })
	r := h.do(t, call{method: "GET", path: "/v1/audit?actor=usr_a&action=tools&target=files&outcome=ok&from=2026-11-20&to=2026-11-21&limit=7&cursor=9"})
	if want := `{"records":[{"time":"1970-01-01T00:00:01Z","actor":"usr_a","action":"tools.call","outcome":"ok"}],"nextCursor":"42"}`; r.body != want {
		t.Errorf("%s, want %s", r.body, want)
	}
	day := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	want := core.AuditQuery{Actor: "usr_a", Action: "tools", Target: "files", Outcome: "ok", From: day, To: day.AddDate(0, 0, 2), Limit: 7, Cursor: "9"}
	if log.queries[0] != want {
		t.Errorf("the query is %+v, want %+v", log.queries[0], want)
	}
	for _, query := range []string{"limit=0", "limit=1001", "from=yesterday", "to=x"} {
		if r := h.do(t, call{method: "GET", path: "/v1/audit?" + query}); r.StatusCode != 400 || r.code() != "bad_request" {
			t.Errorf("%s: %d %s", query, r.StatusCode, r.body)
		}
	}
	log.err = core.Errorf(core.CodeNotConfigured, "no audit file is configured; set audit.file")
	if r := h.do(t, call{method: "GET", path: "/v1/audit"}); r.StatusCode != 400 || r.code() != "not_configured" {
		t.Errorf("without a file: %d %s", r.StatusCode, r.body)
	}
}

func TestLongPathsAreCutOffInTheAuditTrail(t *testing.T) {
	log := &fakes.Audit{}
	h := open(t, newAccess(), func(o *Options) { o.Audit = log })
	long := strings.Repeat("a", 6000)
	for path, want := range map[string]string{
		"/v1/apps/install":                      "POST /v1/apps/install unauthenticated",
		"/v1/apps/" + long + "/start":           "POST /v1/apps/" + long[:maxAuditText-len("/v1/apps/")] + "… unauthenticated",
		"/v1/apps/" + long[:1500] + "ö/restart": "POST /v1/apps/" + long[:maxAuditText-len("/v1/apps/")] + "… unauthenticated",
	} {
		h.do(t, call{method: "POST", path: path, header: map[string]string{"Authorization": "Bearer forged"}})
		var got []string
		for _, r := range log.Take() {
			got = append(got, r.Action+" "+r.Outcome)
			if len(r.Target) > maxAuditText+len("…") {
				t.Errorf("the target has %d bytes", len(r.Target))
			}
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%.60s: recorded %q, want %q", path, got, want)
		}
	}
}

// lateAccess refuses the first request and accepts all others.
type lateAccess struct {
	*fakeAccess
	asked atomic.Bool
}

func (a *lateAccess) API(ctx context.Context, bearer, cookie string) (core.Identity, error) {
	if !a.asked.Swap(true) {
		return core.Identity{}, core.Errorf(core.CodeUnauthenticated, "not known yet")
	}
	return a.fakeAccess.API(ctx, bearer, cookie)
}

func TestAChangeIsRecordedEvenIfItsCallerIsAcceptedOnlyLater(t *testing.T) {
	log := &fakes.Audit{}
	access := newAccess()
	h := open(t, access, func(o *Options) { o.Audit, o.Access = log, &lateAccess{fakeAccess: access} })
	if r := h.do(t, call{method: "POST", path: "/v1/apps/echo/restart"}); r.StatusCode != 200 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if got := log.Take(); len(got) == 0 || got[len(got)-1].Outcome != "ok" {
		t.Errorf("recorded %+v", got)
	}
}

// slowTrail is an audit trail whose reads take a while. It counts how many of them overlap.
type slowTrail struct {
	trail
	reading, most atomic.Int32
}

func (l *slowTrail) Records(ctx context.Context, q core.AuditQuery) (core.AuditPage, error) {
	n := l.reading.Add(1)
	defer l.reading.Add(-1)
	for most := l.most.Load(); n > most && !l.most.CompareAndSwap(most, n); most = l.most.Load() {
	}
	<-time.After(50 * time.Millisecond)
	return l.trail.Records(ctx, q)
}

func TestEachUserReadsOnePageOfTheAuditTrailAtATime(t *testing.T) {
	log := &slowTrail{}
	h := open(t, newAccess(), func(o *Options) { o.AuditTrail = log })
	var reads sync.WaitGroup
	for range 4 {
		reads.Go(func() {
			if r := h.do(t, call{method: "GET", path: "/v1/audit"}); r.StatusCode != 200 {
				t.Errorf("%d %s", r.StatusCode, r.body)
			}
		})
	}
	reads.Wait()
	if most := log.most.Load(); most != 1 {
		t.Errorf("%d concurrent reads, want 1", most)
	}
}

func TestTheAuditTrailRecordsAccountLinksAndRefusedLinks(t *testing.T) {
	a := newAccess()
	a.user("alice", core.RoleMember, core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleMember})
	a.cookies["alice"] = a.bearers["alice"]
	log := &fakes.Audit{}
	h := open(t, a, func(o *Options) { o.Audit = log })
	const link, callback = "/v1/accounts/link?app=far&workspace=" + core.DefaultWorkspaceID, "/v1/accounts/callback?state=state&code=c"
	for _, c := range []struct {
		name, method, path, cookie string
		want                       string // "action outcome actor workspace target" of the last record, "" for none
	}{
		{"an account that is linked", "GET", callback, "service_session=alice; service_account=binding", "GET /v1/accounts/callback ok alice " + core.DefaultWorkspaceID + " far"},
		{"a login from another browser", "GET", callback, "service_session=alice", "GET /v1/accounts/callback forbidden alice"},
		{"a browser that must log in first", "GET", callback, "", ""},
		{"someone who has not agreed to the app's permissions", "POST", link, "service_session=alice", "POST /v1/accounts/link conflict alice " + core.DefaultWorkspaceID + " far"},
		{"a stranger", "POST", link, "", "POST /v1/accounts/link unauthenticated far"},
		{"a page for another person", "GET", link + "&for=bob", "service_session=alice", "GET /v1/accounts/link forbidden alice far"},
	} {
		h.do(t, call{method: c.method, path: c.path, header: map[string]string{"Authorization": "", "Cookie": c.cookie}})
		got := ""
		if all := log.Take(); len(all) > 0 {
			r := all[len(all)-1]
			got = strings.Join(strings.Fields(strings.Join([]string{r.Action, r.Outcome, r.Actor, r.Workspace, r.Target}, " ")), " ")
		}
		if got != c.want {
			t.Errorf("%s: recorded %q, want %q", c.name, got, c.want)
		}
	}
}
