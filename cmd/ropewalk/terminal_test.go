package main_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// hostile is text that manipulates a terminal: its title, its clipboard, the content of the screen and the
// direction of text. In JSON some of it is escaped, as an encoder would do, and some is not.
const hostile = `\u001b]0;title\u0007\u001b]52;c;eA==\u0007\u001b[2J\r\b` + "\u009b2J\u202e\U000e0041"

// hostileAnswers returns responses of the HTTP API by path. All strings in them are hostile.
func hostileAnswers() map[string]string {
	app := `{"name":"a HOSTILE","bundleName":"b HOSTILE","version":"HOSTILE","status":"dead","lastError":"e HOSTILE","toolCount":1}`
	answers := map[string]string{
		"/v1/apps":              `{"apps":[` + app + `]}`,
		"/v1/apps/a":            app,
		"/v1/apps/a/logs":       `{"lines":[{"text":"l HOSTILE"},{"text":"second"}]}`,
		"/v1/apps/a/start":      app,
		"/v1/registries/search": `{"bundles":[{"name":"HOSTILE","description":"d HOSTILE\nfake row"}],"failures":["f HOSTILE"]}`,
		"/v1/tools": `{"tools":[{"name":"a__t","server":"a","tool":"t","definition":{"name":"t","description":"d HOSTILE",` +
			`"inputSchema":{"type":"object","properties":{"p":{"type":"string","description":"HOSTILE"}}}}}]}`,
		"/v1/tools/call": `{"content":[{"type":"text","text":"r HOSTILE"},{"type":"image","mimeType":"HOSTILE"}]}`,
		"/v1/approvals": `{"approvals":[{"id":"i","tool":"HOSTILE","state":"pending","caller":{"id":"u","email":"HOSTILE"},` +
			`"arguments":{"x":"HOSTILE"}}]}`,
		"/v1/pins": `{"pins":[{"id":"i","server":"a","tool":"HOSTILE","version":"HOSTILE","state":"held",` +
			`"changes":[{"path":"HOSTILE","before":"HOSTILE"}]}]}`,
		"/v1/conversations":           `{"conversations":[{"id":"c","preview":"HOSTILE"}]}`,
		"/v1/conversations/c/history": `{"messages":[{"role":"user","content":"m HOSTILE"}]}`,
		"/v1/conversations/c/export":  `{"title":"HOSTILE"}`,
		"/v1/workspace": `{"workspace":{"id":"w","name":"HOSTILE","role":"admin"},"user":{"displayName":"HOSTILE"},"model":{"default":"HOSTILE"},` +
			`"apps":[{"name":"HOSTILE","status":"HOSTILE"}],"workspaces":[{"id":"w","name":"HOSTILE"}]}`,
		"/v1/usage":                `{"totals":{},"breakdown":[{"key":"HOSTILE"}]}`,
		"/v1/users":                `{"users":[{"id":"u","email":"HOSTILE","displayName":"HOSTILE"}]}`,
		"/v1/keys":                 `{"keys":[{"id":"k","name":"HOSTILE"}]}`,
		"/v1/workspaces/w/members": `{"members":[{"user":{"email":"HOSTILE"},"role":"admin"}]}`,
		"/v1/chat/stream": sse("text.delta", `{"text":"HOSTILE"}`) + sse("tool.done", `{"name":"HOSTILE","output":"HOSTILE"}`) +
			sse("error", `{"error":"x","message":"HOSTILE"}`),
		"/v1/events": sse("bundle.crashed", `{"name":"HOSTILE"}`),
	}
	for path, answer := range answers {
		answers[path] = strings.ReplaceAll(answer, "HOSTILE", hostile)
	}
	return answers
}

func sse(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

// hostileServer serves hostileAnswers, and a hostile error for every other path. It returns its address.
func hostileServer(t *testing.T) string {
	answers := hostileAnswers()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if strings.HasPrefix(answer, "event:") {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"error":"not_found","message":"n ` + hostile + `"}`
		}
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestTextFromAppsAndUsersCannotControlTheTerminal(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{
		"TERM=xterm", "NO_COLOR=1", "ROPEWALK_SERVER=" + hostileServer(t), "ROPEWALK_CONTEXTS=" + filepath.Join(s.dir, "contexts.yaml"),
		"PATH=" + built + string(os.PathListSeparator) + os.Getenv("PATH"),
	}
	for _, line := range []string{
		"status", "app list", "app show a", "app show gone", "app logs a", "app start a", "app search x", "tool list", "tool show a__t", "tool call a__t",
		"tool pins", "approval list", "conversation list", "conversation show c", "conversation export c", "usage", "user list", "key list",
		"workspace list", "workspace members ws_w", "workspace remove-member ws_w none", "events", "chat hello",
		"app list --json", "app logs a --json", "tool call a__t --json", "events --json", "conversation export c --format json", "chat hello --json",
	} {
		t.Run(line, func(t *testing.T) {
			screen, _, _ := s.split("", "script", "-qec", "ropewalk "+line, filepath.Join(s.dir, "typescript"))
			if !strings.Contains(screen, "\ufffd") && !strings.Contains(screen, `\u009b`) {
				t.Errorf("the text is not shown: %q", screen)
			}
			for _, r := range strings.ReplaceAll(screen, "\r\n", "\n") {
				if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf) {
					t.Fatalf("the terminal gets %U in %q", r, screen)
				}
			}
		})
	}
}

func TestJSONOutputIsAlsoExactOnATerminal(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"TERM=xterm", "ROPEWALK_SERVER=" + hostileServer(t), "ROPEWALK_CONTEXTS=" + filepath.Join(s.dir, "contexts.yaml")}
	var want string
	if err := json.Unmarshal([]byte(`"a `+hostile+`"`), &want); err != nil {
		t.Fatal(err)
	}
	line := filepath.Join(built, "ropewalk") + " app list --json"
	onTerminal, _, _ := s.split("", "script", "-qec", line, filepath.Join(s.dir, "typescript"))
	piped, _, _ := s.split("", "sh", "-c", line)
	for where, text := range map[string]string{"a terminal": onTerminal, "a pipe": piped} {
		var got struct{ Apps []struct{ Name string } }
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Apps) != 1 || got.Apps[0].Name != want {
			t.Errorf("%s gets %q: %v", where, text, err)
		}
	}
	if logs, _, _ := s.split("", "ropewalk", "app", "logs", "a"); !strings.Contains(logs, "\x1b]0;title\a") {
		t.Errorf("a log that is piped is %q", logs)
	}
}
