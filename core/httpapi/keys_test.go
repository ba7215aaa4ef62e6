package httpapi

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/ropewalk/ropewalk/core"
)

func TestAPIKeysAreCreatedListedAndRevoked(t *testing.T) {
	h := open(t, newAccess(), nil)
	router, err := gorillamux.NewRouter(document(t, h))
	if err != nil {
		t.Fatal(err)
	}
	create := call{method: "POST", path: "/v1/keys", body: `{"name":"ci","role":"member","expiresAt":"2999-01-01T00:00:00Z"}`}
	made := h.do(t, create)
	if got := made.json(t); made.StatusCode != 200 || !strings.HasPrefix(fmt.Sprint(got["key"]), "rwk_") || got["expiresAt"] != "2999-01-01T00:00:00.000Z" {
		t.Fatalf("%d %s", made.StatusCode, made.body)
	}
	checkDocumented(t, router, create, made)
	list := call{method: "GET", path: "/v1/keys"}
	listed := h.do(t, list)
	if listed.StatusCode != 200 || strings.Contains(listed.body, "rwk_") || !strings.Contains(listed.body, `"name":"ci"`) {
		t.Errorf("%d %s", listed.StatusCode, listed.body)
	}
	checkDocumented(t, router, list, listed)
	revoke := call{method: "DELETE", path: "/v1/keys/key_0"}
	if r := h.do(t, revoke); r.StatusCode != 200 || r.body != `{"id":"key_0","deleted":true}` {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := h.do(t, revoke); r.StatusCode != 404 {
		t.Errorf("revoked again: %d %s", r.StatusCode, r.body)
	}
	for _, body := range []string{`{}`, `{"name":"x","expiresAt":"soon"}`} {
		if r := h.do(t, call{method: "POST", path: "/v1/keys", body: body}); r.StatusCode != 400 {
			t.Errorf("%s: %d %s", body, r.StatusCode, r.body)
		}
	}
}

func TestAnEventStreamEndsImmediatelyWhenItsCredentialsAreRevoked(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.access.user("alice", core.RoleMember, core.Workspace{ID: "ws_second", Role: core.RoleMember})
	h.access.user("bob", core.RoleMember, core.Workspace{ID: "ws_second", Role: core.RoleMember})
	follow := func(bearer string) (ended chan struct{}) {
		conn, r := dial(t, h.addr)
		if _, err := conn.Write([]byte("GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + bearer + "\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v %v", resp, err)
		}
		ended = make(chan struct{})
		go func() {
			defer close(ended)
			defer resp.Body.Close()
			lines := bufio.NewScanner(resp.Body)
			for lines.Scan() {
			}
		}()
		return ended
	}
	alice, bob := follow("alice"), follow("bob")
	h.await(t, "the streams do not watch for revocations", func() bool { h.access.mu.Lock(); defer h.access.mu.Unlock(); return len(h.access.watchers) == 2 })
	h.access.revoke("alice")
	<-alice
	select {
	case <-bob:
		t.Error("another user's stream ended too")
	default:
	}
}
