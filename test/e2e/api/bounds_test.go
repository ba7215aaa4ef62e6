package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestAUsersKeysConversationsAndStoredBytesAreLimited(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey), harness.Config("limits: {apiKeys: 3, conversations: 4, storedMiB: 1}\n"))
	until := func(what string, most int, try func(i int) harness.Response) {
		t.Helper()
		for i := range most + 1 {
			a := try(i)
			switch {
			case i < most && a.Status/100 != 2:
				t.Fatalf("%s %d: %d %s", what, i, a.Status, a.Body)
			case i == most && (a.Status != 409 || a.Object(t)["error"] != "limit_reached"):
				t.Errorf("%s beyond the limit: %d %s", what, a.Status, a.Body)
			}
		}
	}
	key := func(i int) harness.Response {
		return s.Do(t, "POST", "/v1/keys", map[string]any{"name": fmt.Sprint("key ", i)}, bearer)
	}
	until("key", 3, key)
	id := s.Do(t, "GET", "/v1/keys", nil, bearer).Object(t)["keys"].([]any)[0].(map[string]any)["id"].(string)
	if a := s.Do(t, "DELETE", "/v1/keys/"+id, nil, bearer); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if a := key(9); a.Status/100 != 2 {
		t.Errorf("after a key was revoked: %d %s", a.Status, a.Body)
	}

	imported := func(size int) harness.Response {
		return s.Do(t, "POST", "/v1/conversations/import", map[string]any{"format": 1, "conversation": map[string]any{"title": "x"}, "messages": []any{
			map[string]any{"role": "user", "content": strings.Repeat("word ", size/5), "timestamp": "2026-11-20T08:00:00Z"},
			map[string]any{"role": "assistant", "content": "yes", "timestamp": "2026-11-20T08:00:01Z"},
		}}, bearer)
	}
	until("conversation", 4, func(int) harness.Response { return imported(100) })
	deleteAll := func() {
		t.Helper()
		for _, c := range s.Do(t, "GET", "/v1/conversations", nil, bearer).Object(t)["conversations"].([]any) {
			if a := s.Do(t, "DELETE", "/v1/conversations/"+c.(map[string]any)["id"].(string), nil, bearer); a.Status != 200 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
		}
	}
	deleteAll()
	until("400 KiB", 2, func(int) harness.Response { return imported(400 << 10) })
	deleteAll()
	first := imported(400 << 10)
	if first.Status/100 != 2 {
		t.Fatalf("after all were deleted: %d %s", first.Status, first.Body)
	}
	conversation := s.Do(t, "GET", "/v1/conversations", nil, bearer).Object(t)["conversations"].([]any)[0].(map[string]any)["id"].(string)
	until("fork", 1, func(int) harness.Response {
		return s.Do(t, "POST", "/v1/conversations/"+conversation+"/fork", nil, bearer)
	})
	until("metadata", 0, func(int) harness.Response {
		return s.Do(t, "PATCH", "/v1/conversations/"+conversation, map[string]any{"metadata": map[string]any{"x": strings.Repeat("x", 500<<10)}}, bearer)
	})
}
