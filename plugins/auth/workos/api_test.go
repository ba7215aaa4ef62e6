package workos

import (
	"encoding/json"
	"net/http"
	"sync"
)

const (
	apiKey       = "sk_test_0123456789abcdef"
	organization = "the organization that is asked for"
)

// api is a fake of the WorkOS API for organization memberships.
type api struct {
	mu     sync.Mutex
	broken bool
	asked  int
	lax    bool // lists all memberships, whichever user is asked about
	open   bool // everyone is a member
	listed []map[string]any
}

func newAPI() *api { return &api{listed: []map[string]any{active("user_alice", "admin")}} }

func active(user, slug string) map[string]any {
	return map[string]any{
		"object": "organization_membership", "id": "om_" + user, "user_id": user, "organization_id": organization,
		"status": "active", "role": map[string]any{"slug": slug}, "roles": []any{map[string]any{"slug": slug}},
		"created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-01T00:00:00.000Z",
	}
}

// list replaces the memberships that the API knows.
func (a *api) list(memberships ...map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listed = memberships
}

func (a *api) breakDown(broken bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken = broken
}

func (a *api) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	w.Header().Set("Content-Type", "application/json")
	switch {
	case a.broken:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.Method != http.MethodGet || r.URL.Path != "/user_management/organization_memberships":
		w.WriteHeader(http.StatusNotFound)
	case r.Header.Get("Authorization") != "Bearer "+apiKey:
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"message":"Unauthorized"}`))
	case r.FormValue("organization_id") == "":
		w.WriteHeader(http.StatusUnprocessableEntity)
	default:
		data := []map[string]any{}
		listed := a.listed
		if a.open {
			listed = []map[string]any{active(r.FormValue("user_id"), "member")}
		}
		for _, m := range listed {
			if m["organization_id"] == organization {
				m["organization_id"] = r.FormValue("organization_id")
			}
			if a.lax || m["user_id"] == r.FormValue("user_id") {
				data = append(data, m)
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data, "list_metadata": map[string]any{"before": nil, "after": nil}})
	}
}
