package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

func TestStatusAndBodyForEachErrorCode(t *testing.T) {
	h := open(t, newAccess(), nil)
	for code, status := range map[core.Code]int{
		core.CodeBadRequest: 400, core.CodeInvalidInput: 400, core.CodeCredentialsRequired: 400, core.CodeWorkspaceRequired: 400, core.CodeNotConfigured: 400,
		core.CodeForbidden: 403, core.CodeProtected: 403, core.CodeFeatureDisabled: 403, core.CodeWorkspaceDenied: 403,
		core.CodeNotFound: 404, core.CodeToolNotFound: 404, core.CodeResourceNotFound: 404, core.CodeMethodNotAllowed: 405,
		core.CodeAlreadyInstalled: 409, core.CodeRunInProgress: 409, core.CodeConflict: 409, core.CodePayloadTooLarge: 413, core.CodeUnsupportedMedia: 415,
		core.CodeRateLimited: 429, core.CodeInstallFailed: 500, core.CodeUninstallFailed: 500, core.CodeStartFailed: 500, core.CodeStopFailed: 500,
		core.CodeUnavailable: 503,
	} {
		t.Run(string(code), func(t *testing.T) {
			h.tools.err = core.Errorf(code, "what was wrong").WithDetails(map[string]int{"n": 1}).WithRetryAfter(1500 * time.Millisecond)
			r := h.do(t, call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b"}`})
			want := fmt.Sprintf(`{"error":%q,"message":"what was wrong","details":{"n":1}}`, code)
			if r.StatusCode != status || r.body != want || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%d %s", r.StatusCode, r.body)
			}
			wantRetry := map[int]string{429: "2", 503: "2"}[status]
			if got := r.Header.Get("Retry-After"); got != wantRetry {
				t.Errorf("Retry-After %q, want %q", got, wantRetry)
			}
		})
	}
}

func TestAnErrorWithoutACodeIsLoggedAndNotShown(t *testing.T) {
	h := open(t, newAccess(), nil)
	for name, err := range map[string]error{
		"plain": errors.New("secret path /root"), "internal": core.Errorf(core.CodeInternal, "secret path /root"),
	} {
		t.Run(name, func(t *testing.T) {
			h.tools.err = err
			h.log.Reset()
			r := h.do(t, call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b"}`})
			if r.StatusCode != 500 || r.code() != "internal_error" || strings.Contains(r.body, "secret") {
				t.Errorf("%d %s", r.StatusCode, r.body)
			}
			if log := h.log.String(); !strings.Contains(log, "secret path") || !strings.Contains(log, r.Header.Get("X-Request-Id")) {
				t.Errorf("the log does not explain request %s:\n%s", r.Header.Get("X-Request-Id"), log)
			}
		})
	}
}

func TestAPanicFailsOnlyOneRequest(t *testing.T) {
	h := open(t, newAccess(), func(o *Options) {
		o.Mounts = append(o.Mounts, func(r Router) { r.Get("/mounted", func(*fiber.Ctx) error { panic("mounted") }) })
	})
	h.tools.panics = true
	for _, c := range []call{{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b"}`}, {method: "GET", path: "/mounted"}} {
		if r := h.do(t, c); r.StatusCode != 500 || r.code() != "internal_error" || r.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: %d %s", c.path, r.StatusCode, r.body)
		}
	}
	h.tools.panics = false
	if r := h.do(t, call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b"}`}); r.StatusCode != 200 {
		t.Errorf("the next call: %d %s", r.StatusCode, r.body)
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, c := range []struct {
		method, path, code string
		status             int
		allow              string
	}{
		{"GET", "/", "not_found", 404, ""},
		{"GET", "/v1", "not_found", 404, ""},
		{"GET", "/v1/nothing", "not_found", 404, ""},
		{"GET", "/V1/apps", "not_found", 404, ""},
		{"GET", "/v1/apps/", "not_found", 404, ""},
		{"GET", "/v1/apps/../health", "not_found", 404, ""},
		{"GET", "/v1/chat", "method_not_allowed", 405, "POST"},
		{"POST", "/v1/apps", "method_not_allowed", 405, "GET, HEAD"},
		{"GET", "/v1/apps/echo/start", "method_not_allowed", 405, "POST"},
		{"POST", "/v1/apps/echo", "method_not_allowed", 405, "DELETE"},
		{"GET", "/v1/tools/call", "method_not_allowed", 405, "POST"},
		{"DELETE", "/v1/events", "method_not_allowed", 405, "GET, HEAD"},
		{"BREW", "/v1/apps", "method_not_allowed", 405, "GET, HEAD"},
		{"TRACE", "/v1/apps", "method_not_allowed", 405, "GET, HEAD"},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			r := h.do(t, call{method: c.method, path: c.path})
			if r.StatusCode != c.status || r.code() != c.code {
				t.Errorf("%d %s", r.StatusCode, r.body)
			}
			allow := map[string]bool{}
			for _, m := range strings.Split(strings.Join(r.Header.Values("Allow"), ", "), ", ") {
				allow[m] = true
			}
			for _, m := range strings.Split(c.allow, ", ") {
				if !allow[m] {
					t.Errorf("Allow %q lacks %q", r.Header.Values("Allow"), m)
				}
			}
		})
	}
}

func TestHeadersOnEveryResponse(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, c := range []call{
		{method: "GET", path: "/v1/health"},
		{method: "GET", path: "/v1/nothing"},
		{method: "POST", path: "/v1/apps"},
		{method: "OPTIONS", path: "/v1/apps"},
		{method: "GET", path: "/v1/apps", header: map[string]string{"Authorization": ""}},
		{method: "POST", path: "/v1/tools/call", body: strings.Repeat("x", maxBody+1)},
		{method: "GET", path: "/v1/health", header: map[string]string{"X-Long": strings.Repeat("x", maxHeaders)}},
		{method: "HEAD", path: "/v1/health"},
		{method: "HEAD", path: "/v1/events"},
	} {
		r := h.do(t, c)
		if r.Header.Get("X-Content-Type-Options") != "nosniff" || r.Header.Get("Referrer-Policy") != "strict-origin-when-cross-origin" || r.Header.Get("X-Request-Id") == "" || r.Header.Get("Server") != "" {
			t.Errorf("%s %s: %d %v", c.method, c.path, r.StatusCode, r.Header)
		}
	}
}

func TestARequestIDIsKeptIfValidAndOtherwiseGenerated(t *testing.T) {
	h := open(t, newAccess(), nil)
	ask := func(id string) string {
		return h.do(t, call{method: "GET", path: "/v1/health", header: map[string]string{"X-Request-Id": id}}).Header.Get("X-Request-Id")
	}
	for _, id := range []string{"a", "Trace-1_2.3", strings.Repeat("x", 128)} {
		if got := ask(id); got != id {
			t.Errorf("the valid ID %q became %q", id, got)
		}
	}
	for _, id := range []string{"", "a b", "a\"b", "ü", strings.Repeat("x", 129)} {
		if got := ask(id); got == id || got == "" {
			t.Errorf("the invalid ID %q became %q", id, got)
		}
	}
	if first, second := ask(""), ask(""); first == second {
		t.Error("two requests have the same ID")
	}
}

func TestResponsesUnderV1AreNotCached(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, path := range []string{"/v1/apps", "/v1/workspace", "/v1/nothing"} {
		if r := h.do(t, call{method: http.MethodGet, path: path}); r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", path, r.Header)
		}
	}
}

func TestAnErrorMessageIsNotHTMLEscaped(t *testing.T) {
	encoded, err := rawjson.Encode(errorBody{Error: core.CodeBadRequest, Message: "the form is ws_<alphanumeric>"})
	if err != nil || string(encoded) != `{"error":"bad_request","message":"the form is ws_<alphanumeric>"}` {
		t.Errorf("%s, %v", encoded, err)
	}
}
