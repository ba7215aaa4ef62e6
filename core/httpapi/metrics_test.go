package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// fakeMetrics has a single metric.
type fakeMetrics struct{}

func (fakeMetrics) Request(string, string, int, time.Duration) {}

func (fakeMetrics) Text() ([]byte, error) { return []byte("ropewalk_info 1\n"), nil }

func TestOnlyOrganizationAdminsReadMetrics(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.access.user("admin", core.RoleAdmin, core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleAdmin})
	h.access.user("member", core.RoleMember, core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleAdmin})
	for name, c := range map[string]struct {
		authorization string
		status        int
	}{
		"an admin":      {"Bearer admin", 200},
		"a member":      {"Bearer member", 403},
		"not logged in": {anonymous, 401},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.do(t, call{method: "GET", path: "/v1/metrics", header: map[string]string{"Authorization": c.authorization}})
			if r.StatusCode != c.status || (r.StatusCode == 200) != strings.Contains(r.body, "ropewalk_info 1") {
				t.Errorf("%d %s", r.StatusCode, r.body)
			}
		})
	}
}
