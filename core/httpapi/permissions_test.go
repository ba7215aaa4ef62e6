package httpapi

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

func TestAppManagersSeeAndChangePermissions(t *testing.T) {
	h := open(t, newAccess(), nil)
	if r := h.do(t, call{method: "GET", path: "/v1/apps/echo/permissions"}); r.StatusCode != 200 || !strings.Contains(r.body, `"name":"echo"`) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	change := call{method: "PATCH", path: "/v1/apps/echo/permissions", body: `{"allow":[{"kind":"read","target":"/srv/data"}]}`}
	if r := h.do(t, change); r.StatusCode != 200 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	want := core.Access{Kind: core.PermissionRead, Target: "/srv/data"}
	if len(h.apps.decided) != 1 || len(h.apps.decided[0].Allow) != 1 || h.apps.decided[0].Allow[0] != want {
		t.Errorf("the manager received %+v", h.apps.decided)
	}
	h.access.user("alice", core.RoleMember, core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleMember})
	change.header = map[string]string{"Authorization": "Bearer alice"}
	if r := h.do(t, change); r.StatusCode != 403 {
		t.Errorf("a member changed permissions: %d %s", r.StatusCode, r.body)
	}
}

func TestOnlyAppManagersReadAnAppsOutput(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.apps.apps[core.DefaultWorkspaceID][1].LastOutput = []string{"what it wrote"}
	h.access.user("alice", core.RoleMember, core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleMember})
	for bearer, want := range map[string]bool{"": true, "alice": false} {
		c := call{method: "GET", path: "/v1/apps"}
		if bearer != "" {
			c.header = map[string]string{"Authorization": "Bearer " + bearer}
		}
		if r := h.do(t, c); r.StatusCode != 200 || strings.Contains(r.body, "what it wrote") != want {
			t.Errorf("%q: %d %s", bearer, r.StatusCode, r.body)
		}
	}
}
