package httpapi

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

func healthOf(t *testing.T, r reply) []any {
	t.Helper()
	v := r.json(t)
	if r.StatusCode != 200 || v["status"] != "ok" || v["uptime"].(float64) < 0 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	return v["bundles"].([]any)
}

func TestHealthNeedsNoLogin(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.apps.apps["ws_alice"] = []core.App{{Name: "private", Status: core.StateDead}}
	h.access.user("alice", core.RoleMember, core.Workspace{ID: "ws_alice", Role: core.RoleAdmin})
	for _, c := range []struct {
		name, auth, workspace, first string
	}{
		{"without a login, the default workspace", anonymous, "", "echo"},
		{"without a login, the default workspace even if another is requested", anonymous, "ws_alice", "echo"},
		{"an invalid credential is treated as no login", "Bearer wrong", "ws_alice", "echo"},
		{"a member sees the workspace", "Bearer alice", "ws_alice", "private"},
		{"a member without the header sees the only workspace", "Bearer alice", "", "private"},
		{"another caller sees the default workspace", "Bearer the-right-key-0123", "ws_alice", "echo"},
		{"a malformed workspace is not refused", "Bearer alice", "../x", "echo"},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := map[string]string{"Authorization": c.auth, "X-Workspace-Id": c.workspace}
			bundles := healthOf(t, h.do(t, call{method: "GET", path: "/v1/health", header: header}))
			if got := bundles[0].(map[string]any); got["name"] != c.first || len(got) != 2 {
				t.Errorf("%v", bundles)
			}
		})
	}
}

func TestBundleHealthIsAnArray(t *testing.T) {
	h := open(t, newAccess(), nil)
	r := h.do(t, call{method: "GET", path: "/v1/bundles/health", header: map[string]string{"Authorization": anonymous}})
	want := `[{"name":"echo","state":"running","uptime":1.5,"restartCount":1},{"name":"quiet","state":"stopped","uptime":1.5,"restartCount":1}]`
	if r.StatusCode != 200 || r.body != want {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	h.apps.apps = nil
	if r := h.do(t, call{method: "GET", path: "/v1/bundles/health"}); r.body != `[]` {
		t.Errorf("without apps: %s", r.body)
	}
	if bundles := healthOf(t, h.do(t, call{method: "GET", path: "/v1/health"})); len(bundles) != 0 {
		t.Errorf("without apps: %v", bundles)
	}
}

func TestHealthRespondsWhileTheAuthAdapterHangs(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.access.hang = true
	start := time.Now()
	bundles := healthOf(t, h.do(t, call{method: "GET", path: "/v1/health"}))
	if took := time.Since(start); took > 30*time.Second || len(bundles) != 2 {
		t.Errorf("%v after %v", bundles, took)
	}
}

func TestAWorkspaceIsReturnedAsDocumented(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, path := range []string{"/v1/workspace", "/v1/bootstrap"} {
		r := h.do(t, call{method: "GET", path: path, header: map[string]string{"X-Workspace-Id": "ws_second"}})
		v := r.json(t)
		if uptime := v["status"].(map[string]any)["uptime"].(float64); r.StatusCode != 200 || uptime < 0 {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
		v["status"].(map[string]any)["uptime"] = 0.0
		noModel := v["modelError"]
		if text, _ := noModel.(string); !strings.HasPrefix(text, "no model is configured; set models.default") {
			t.Errorf("%s: modelError is %q", path, text)
		}
		want := map[string]string{
			"workspace":  `{"id":"ws_second","name":"Second","role":"admin"}`,
			"workspaces": `[{"id":"ws_default","name":"Default","role":"admin"},{"id":"ws_second","name":"Second","role":"admin"}]`,
			"user":       `{"displayName":"Owner","email":"","id":"usr_owner","orgRole":"owner"}`,
			"model":      `null`, "modelError": encoded(t, noModel), "apps": `[]`, "recentConversations": `[]`, "instructions": `""`, "status": `{"totalTools":3,"uptime":0}`, "version": `"test"`,
		}
		if len(v) != len(want) {
			t.Errorf("%s: %s", path, r.body)
		}
		for name, value := range want {
			if got := encoded(t, v[name]); got != value {
				t.Errorf("%s: %s is %s, want %s", path, name, got, value)
			}
		}
	}
}

// fullDisk is a state store that rejects writes.
type fullDisk struct{}

func (fullDisk) CheckWritable(context.Context) error {
	return core.Errorf(core.CodeUnavailable, "the database's disk is full")
}

func TestHealthReportsWhyTheStateIsReadOnly(t *testing.T) {
	s := &Server{options: Options{State: fullDisk{}}, log: hclog.NewNullLogger()}
	if status, reason := s.stateHealth(t.Context()); status != "degraded" || reason != "the database's disk is full" {
		t.Errorf("%s: %s", status, reason)
	}
}
