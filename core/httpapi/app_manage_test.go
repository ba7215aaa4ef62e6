package httpapi

import (
	"context"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
)

func TestAppsAreShownConfiguredRestartedUpdatedAndImportedOverV1(t *testing.T) {
	h := open(t, newAccess(), nil)
	router, err := gorillamux.NewRouter(document(t, h))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		call call
		want string
	}{
		{call{method: "GET", path: "/v1/apps/echo"}, `"bundleName":"@acme/echo"`},
		{call{method: "PATCH", path: "/v1/apps/echo", body: `{"env":{"A":"b","C":null}}`}, `"name":"echo"`},
		{call{method: "POST", path: "/v1/apps/echo/restart"}, `{"name":"echo","status":"running"}`},
		{call{method: "POST", path: "/v1/apps/echo/restore"}, `"name":"echo"`},
		{call{method: "POST", path: "/v1/apps/echo/update", body: `{"version":"2.0.0"}`}, `"version":"2.0.0"`},
		{call{method: "GET", path: "/v1/apps/echo/logs?tail=7"}, `{"lines":[{"text":"last 7"}]}`},
		{call{method: "POST", path: "/v1/apps/import", body: `{"mcpServers":{"a":{"command":"npx"}},"dryRun":true}`}, `"status":"planned"`},
	} {
		r := h.do(t, c.call)
		if r.StatusCode != 200 || !strings.Contains(r.body, c.want) {
			t.Errorf("%s %s: %d %s", c.call.method, c.call.path, r.StatusCode, r.body)
			continue
		}
		checkDocumented(t, router, c.call, r)
	}
	upload := call{method: "POST", path: "/v1/apps/upload?serverName=up", body: "zip", header: map[string]string{"Content-Type": "application/octet-stream"}}
	if r := h.do(t, upload); r.StatusCode != 200 || !strings.Contains(r.body, `"bundleName":"zip"`) {
		t.Errorf("upload: %d %s", r.StatusCode, r.body)
	}
	if r := h.do(t, call{method: "GET", path: "/v1/apps/echo/logs?follow=true"}); r.StatusCode != 200 || !strings.Contains(r.body, "event: log\ndata: {\"text\":\"last 200\"}") {
		t.Errorf("follow: %d %q", r.StatusCode, r.body)
	}
}

func TestManagingAnAppRequiresAWorkspaceAdmin(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.access.user("alice", core.RoleMember, core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleMember})
	for _, c := range []call{
		{method: "PATCH", path: "/v1/apps/echo", body: `{}`}, {method: "POST", path: "/v1/apps/echo/restart"}, {method: "POST", path: "/v1/apps/echo/update"},
		{method: "POST", path: "/v1/apps/echo/restore"}, {method: "GET", path: "/v1/apps/echo/logs"}, {method: "POST", path: "/v1/apps/upload", body: "zip"}, {method: "POST", path: "/v1/apps/import", body: `{"mcpServers":{"a":{}}}`},
	} {
		c.header = map[string]string{"Authorization": "Bearer alice"}
		if r := h.do(t, c); r.StatusCode != 403 {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.StatusCode, r.body)
		}
	}
	if r := h.do(t, call{method: "GET", path: "/v1/apps/echo", header: map[string]string{"Authorization": "Bearer alice"}}); r.StatusCode != 200 {
		t.Errorf("a member should be able to read an app: %d", r.StatusCode)
	}
}

func TestTheOpenAPIDocumentListsTheConflictForAnInterruptedCommand(t *testing.T) {
	doc := document(t, open(t, newAccess(), nil))
	for operation, c := range map[string]call{
		"start":     {method: "POST", path: "/v1/apps/echo/start"},
		"restart":   {method: "POST", path: "/v1/apps/echo/restart"},
		"restore":   {method: "POST", path: "/v1/apps/echo/restore"},
		"configure": {method: "PATCH", path: "/v1/apps/echo", body: `{"env":{"A":"b"}}`},
		"update":    {method: "POST", path: "/v1/apps/echo/update"},
	} {
		h := open(t, newAccess(), nil)
		h.apps.fail[operation] = core.Errorf(core.CodeConflict, "app echo was stopped in the meantime")
		r := h.do(t, c)
		if r.StatusCode != 409 || r.code() != "conflict" {
			t.Errorf("%s: %d %s", operation, r.StatusCode, r.body)
		}
		item := doc.Paths.Find(strings.Replace(c.path, "echo", "{name}", 1))
		if item == nil || item.GetOperation(c.method).Responses.Status(409) == nil { // "default" is not enough
			t.Errorf("the document does not list the 409 for %s %s", c.method, c.path)
		}
	}
}

// refusing is a chat in which a model refuses a tool from the app echo.
type refusing struct{ Chat }

func (refusing) RefusedTools(_ context.Context, _ core.Caller, server string) ([]core.RefusedTool, error) {
	if server != "echo" {
		return nil, nil
	}
	return []core.RefusedTool{{Name: "say", Model: "local:m", Reason: "Invalid schema."}}, nil
}

func TestAnAppShowsTheToolsThatModelsRefuse(t *testing.T) {
	h := open(t, newAccess(), func(o *Options) {
		o.Chat = refusing{newChat(t, newFakeConversations(), &fakeTools{apps: newApps()}, config.Models{})}
	})
	h.access.user("alice", core.RoleMember, core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleMember})
	for who, want := range map[string]string{
		"":      `"refusedTools":[{"name":"say","model":"local:m","reason":"Invalid schema."}]`,
		"alice": `"refusedTools":[{"name":"say","model":"local:m"}]`,
	} {
		asked := call{method: "GET", path: "/v1/apps/echo"}
		if who != "" {
			asked.header = map[string]string{"Authorization": "Bearer " + who}
		}
		if r := h.do(t, asked); r.StatusCode != 200 || !strings.Contains(r.body, want) {
			t.Errorf("%q got %d %s, want %s", who, r.StatusCode, r.body, want)
		}
	}
	if r := h.do(t, call{method: "GET", path: "/v1/apps/quiet"}); strings.Contains(r.body, "refusedTools") {
		t.Errorf("another app: %s", r.body)
	}
}
