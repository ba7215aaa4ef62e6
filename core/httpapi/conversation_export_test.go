package httpapi

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/ropewalk/ropewalk/core"
)

// converse creates a conversation of the owner. It has one question and one answer with a tool call.
func converse(t *testing.T, h *testServer) string {
	t.Helper()
	owner := core.Caller{Identity: core.Owner(), Workspace: core.Workspace{ID: core.DefaultWorkspaceID}}
	made, err := h.conversations.CreateConversation(t.Context(), core.Conversation{
		Workspace: owner.Workspace.ID, Owner: owner.User.ID, Title: "Sums", Metadata: json.RawMessage(`{"a":1}`), LastModel: "p:m",
	})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	if _, err := h.conversations.AppendMessages(t.Context(), owner.Conversation(made.ID), []core.Message{
		{Role: "user", Content: "2+2?", Timestamp: at},
		{Role: "assistant", Content: "4", Timestamp: at.Add(time.Second), Metadata: json.RawMessage(`{"toolCalls":[{"id":"1","name":"calc__add","input":{"a":2},"output":"4","ok":true,"ms":1}]}`)},
	}); err != nil {
		t.Fatal(err)
	}
	return made.ID
}

func TestAConversationIsReturnedWithMetadataLastModelAndETag(t *testing.T) {
	h := open(t, newAccess(), nil)
	id := converse(t, h)
	c := call{method: "GET", path: "/v1/conversations/" + id}
	r := h.do(t, c)
	tag := r.Header.Get("ETag")
	if got := r.json(t); r.StatusCode != 200 || tag == "" || got["lastModel"] != "p:m" || got["metadata"].(map[string]any)["a"] != 1.0 {
		t.Fatalf("%d %s, ETag %q", r.StatusCode, r.body, tag)
	}
	c.header = map[string]string{"If-None-Match": `"other", W/` + tag}
	if again := h.do(t, c); again.StatusCode != 304 || again.body != "" || again.Header.Get("ETag") != tag {
		t.Errorf("%d %q", again.StatusCode, again.body)
	}
	h.do(t, call{method: "PATCH", path: "/v1/conversations/" + id, body: `{"title":"Other"}`})
	if changed := h.do(t, c); changed.StatusCode != 200 || changed.Header.Get("ETag") == tag {
		t.Errorf("after a change: %d, ETag %q", changed.StatusCode, changed.Header.Get("ETag"))
	}
	h.access.user("alice", core.RoleMember, core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleMember})
	if other := h.do(t, call{method: "GET", path: c.path, header: map[string]string{"Authorization": "Bearer alice"}}); other.StatusCode != 404 {
		t.Errorf("another user: %d %s", other.StatusCode, other.body)
	}
}

func TestSeveralConversationsAreDeletedAtOnce(t *testing.T) {
	h := open(t, newAccess(), nil)
	first, second := converse(t, h), converse(t, h)
	c := call{method: "POST", path: "/v1/conversations/delete", body: `{"ids":["` + first + `","conv_ffffffffffffffff"]}`}
	if r := h.do(t, c); r.StatusCode != 200 || r.body != `{"deleted":["`+first+`"],"notFound":["conv_ffffffffffffffff"]}` {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := h.do(t, call{method: "GET", path: "/v1/conversations/" + first}); r.StatusCode != 404 {
		t.Errorf("the deleted one: %d", r.StatusCode)
	}
	if r := h.do(t, call{method: "GET", path: "/v1/conversations/" + second}); r.StatusCode != 200 {
		t.Errorf("the other one: %d", r.StatusCode)
	}
	for _, body := range []string{`{}`, `{"ids":[]}`} {
		if r := h.do(t, call{method: "POST", path: c.path, body: body}); r.StatusCode != 400 {
			t.Errorf("%s: %d", body, r.StatusCode)
		}
	}
}

func TestAnExportedConversationIsRestoredWithItsMessages(t *testing.T) {
	h := open(t, newAccess(), nil)
	id := converse(t, h)
	router, err := gorillamux.NewRouter(document(t, h))
	if err != nil {
		t.Fatal(err)
	}
	export := call{method: "GET", path: "/v1/conversations/" + id + "/export"}
	file := h.do(t, export)
	if file.StatusCode != 200 || !strings.Contains(file.Header.Get("Content-Disposition"), id+".json") {
		t.Fatalf("%d %s", file.StatusCode, file.body)
	}
	checkDocumented(t, router, export, file)
	restore := call{method: "POST", path: "/v1/conversations/import", body: file.body}
	made := h.do(t, restore)
	if made.StatusCode != 200 || made.json(t)["title"] != "Sums" || made.json(t)["id"] == id {
		t.Fatalf("%d %s", made.StatusCode, made.body)
	}
	checkDocumented(t, router, restore, made)
	history := func(id string) string {
		_, messages, _ := strings.Cut(h.do(t, call{method: "GET", path: "/v1/conversations/" + id + "/history"}).body, `"messages":`)
		return messages
	}
	if a, b := history(id), history(made.json(t)["id"].(string)); a != b || !strings.Contains(a, "calc__add") {
		t.Errorf("exported %s\nrestored %s", a, b)
	}
	for _, body := range []string{
		`{"format":2,"conversation":{},"messages":[]}`,
		`{"format":1,"conversation":{"metadata":[]},"messages":[]}`,
		`{"format":1,"conversation":{},"messages":[{"role":"system","content":"","timestamp":"2026-11-20T08:00:00Z"}]}`,
		`{"format":1,"conversation":{},"messages":[{"role":"user","content":"","timestamp":"yesterday"}]}`,
	} {
		if r := h.do(t, call{method: "POST", path: restore.path, body: body}); r.StatusCode != 400 {
			t.Errorf("%s: %d %s", body, r.StatusCode, r.body)
		}
	}
}

func TestAConversationIsExportedAsMarkdown(t *testing.T) {
	h := open(t, newAccess(), nil)
	r := h.do(t, call{method: "GET", path: "/v1/conversations/" + converse(t, h) + "/export?format=markdown"})
	want := "# Sums\n\n## User (2026-11-20T08:00:00.000Z)\n\n2+2?\n\n## Assistant (2026-11-20T08:00:01.000Z)\n\n4\n\nTool `calc__add`\n\n```json\n{\"a\":2}\n```\n"
	if r.StatusCode != 200 || r.body != want || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/markdown") {
		t.Errorf("%d %q", r.StatusCode, r.body)
	}
}

func TestAnImportKeepsMetadataAndRejectsInvalidContent(t *testing.T) {
	h := open(t, newAccess(), nil)
	restore := func(metadata string) reply {
		return h.do(t, call{method: "POST", path: "/v1/conversations/import", body: `{"format":1,"conversation":{"title":"T","metadata":{}},` +
			`"messages":[{"role":"assistant","content":"4","timestamp":"2026-11-20T08:00:00Z","metadata":` + metadata + `}]}`})
	}
	for metadata, names := range map[string]string{
		`{"toolCalls":{}}`:              "messages.metadata.toolCalls must be an array",
		`{"toolCalls":[{"input":[]}]}`:  "input must be an object",
		`{"costUsd":false}`:             "costUsd must be a number",
		`{"inputTokens":-1}`:            "-1 is not a number from 0 to",
		`{"llmMs":9007199254740992}`:    "9007199254740992 is not a number from 0 to",
		`{"inputTokens":1.5}`:           "inputTokens must be a whole number",
		`{"attachments":[{"name":{}}]}`: "name must be a string",
		`{"attachments":[{"name":"a","url":"javascript:alert(1)"}]}`:                                   "attachments.url must be an https address",
		`{"attachments":[{"name":"a","url":"/v1/conversations/conv_1/../../auth/authorize"}]}`:         "attachments.url must be an https address",
		`{"attachments":[{"name":"a","url":"https://user:word@example.com/a.png"}]}`:                   "attachments.url must be an https address",
		`{"attachments":[{"name":"a","url":"https://"}]}`:                                              "attachments.url must be an https address",
		`{"attachments":[{"name":"a","url":"https://example.com/\u202egnp.exe"}]}`:                     "attachments.url must be an https address",
		`{"attachments":[{"name":"a","url":"https://example.com/` + strings.Repeat("a", 2048) + `"}]}`: "attachments.url must be an https address",
		`{"stopReason":"tired"}`:                     "stopReason must be",
		`{"parts":[{"type":"image"}]}`:               "parts.type must be text, toolCall, reasoning or summary",
		`{"parts":[{"type":"toolCall","index":-1}]}`: "-1 is not a number from 0 to",
	} {
		if r := restore(metadata); r.StatusCode != 400 || !strings.Contains(r.body, names) {
			t.Errorf("%s: %d %s, want %q", metadata, r.StatusCode, r.body, names)
		}
	}
	r := restore(`{"toolCalls":[{"id":"1","name":"calc__add","input":{"a":12345678901234567890},"output":"4","ok":true,"ms":1.0}],"costUsd":null,"other":1}`)
	if r.StatusCode != 200 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	history := h.do(t, call{method: "GET", path: "/v1/conversations/" + r.json(t)["id"].(string) + "/history"})
	if !strings.Contains(history.body, `"metadata":{"toolCalls":[{"id":"1","name":"calc__add","input":{"a":12345678901234567890},"output":"4","ok":true,"ms":1}]}`) {
		t.Errorf("%s", history.body)
	}
}

// Exports from older versions contain addresses exactly as people wrote them.
func TestAnImportAcceptsAnUpperCaseURLScheme(t *testing.T) {
	h := open(t, newAccess(), nil)
	r := h.do(t, call{method: "POST", path: "/v1/conversations/import", body: `{"format":1,"conversation":{"title":"T","metadata":{}},` +
		`"messages":[{"role":"user","content":"4","timestamp":"2026-11-20T08:00:00Z","metadata":{"attachments":[{"id":"a","name":"a","mimeType":"image/png","url":"HTTPS://example.com/a.png"}]}}]}`})
	if r.StatusCode != 200 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

func TestAnImportKeepsTheOrderOfTextsAndToolCalls(t *testing.T) {
	h := open(t, newAccess(), nil)
	restored := func(parts string) (string, string) {
		r := h.do(t, call{method: "POST", path: "/v1/conversations/import", body: `{"format":1,"conversation":{"title":"T","metadata":{}},"messages":[` +
			`{"role":"assistant","content":"I add.\n\n4","timestamp":"2026-11-20T08:00:00Z","metadata":{"toolCalls":[{"id":"1","name":"calc__add","input":{"a":2},"output":"4","ok":true,"ms":1}],"parts":` + parts + `}}]}`})
		if r.StatusCode != 200 {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
		path := "/v1/conversations/" + r.json(t)["id"].(string)
		return h.do(t, call{method: "GET", path: path + "/history"}).body, h.do(t, call{method: "GET", path: path + "/export?format=markdown"}).body
	}
	const inOrder = `[{"type":"text","text":"I add."},{"type":"toolCall","index":0},{"type":"text","text":"4"}]`
	history, markdown := restored(inOrder)
	if !strings.Contains(history, `"parts":`+inOrder) {
		t.Errorf("%s", history)
	}
	if want := "\n\nI add.\n\nTool `calc__add`\n\n```json\n{\"a\":2}\n```\n\n4\n"; !strings.HasSuffix(markdown, want) {
		t.Errorf("%q, want it to end with %q", markdown, want)
	}
	for _, other := range []string{`[{"type":"text","text":"Something else."},{"type":"toolCall","index":0}]`, `[{"type":"toolCall","index":7}]`, `[]`} {
		history, markdown := restored(other)
		if strings.Contains(history, `"parts"`) || !strings.Contains(markdown, "I add.\n\n4\n\nTool") {
			t.Errorf("%s: %s\n%s", other, history, markdown)
		}
	}
}
