package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// chatServer starts a testServer that chats with a speaker.
func chatServer(t *testing.T, s *speaker, change func(*Options)) *testServer {
	t.Helper()
	conversations, own := newFakeConversations(), &fakeTools{}
	h := open(t, newAccess(), func(o *Options) {
		o.Tools, o.Chat = own, newChat(t, conversations, own, talking(s))
		if change != nil {
			change(o)
		}
	})
	h.conversations, h.tools = conversations, own
	return h
}

func TestChatReturnsTheWholeAnswer(t *testing.T) {
	h := chatServer(t, newSpeaker(t, 200, "Hel", "lo."), nil)
	r := h.do(t, call{method: "POST", path: "/v1/chat", body: `{"message":"hi","unknown":1}`})
	want := `"response":"Hello.","conversationId":"conv_0000000000000001","workspaceId":"ws_default","skillName":null,"toolCalls":[],"inputTokens":4,"outputTokens":2,"stopReason":"complete"`
	if r.StatusCode != 200 || !strings.Contains(r.body, want) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

func TestAChatStreamWritesEachEventInOnePiece(t *testing.T) {
	s := newSpeaker(t, 200, "Hel", "lo.")
	s.hold = make(chan struct{})
	h := chatServer(t, s, func(o *Options) { o.Timeouts.Quiet = 20 * time.Millisecond })
	resp := h.stream(t, `{"message":"hi"}`)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	events := readEvents(resp.Body)
	var names []string
	quiet := false
	for e := range events {
		if e.name == "" {
			if !quiet { // a keep-alive while the provider's answer is delayed
				quiet = true
				close(s.hold)
			}
			continue
		}
		names = append(names, e.name)
		if e.name == "done" && !strings.Contains(e.data, `"response":"Hello."`) {
			t.Errorf("done %s", e.data)
		}
	}
	if want := []string{"chat.start", "text.delta", "text.delta", "done"}; !slices.Equal(names, want) || !quiet {
		t.Errorf("events %v, keep-alive received: %v", names, quiet)
	}
}

// On both routes, the request to the provider is cancelled when the client disconnects.
func TestARunEndsWhenItsClientDisconnects(t *testing.T) {
	for _, path := range []string{"/v1/chat", "/v1/chat/stream"} {
		t.Run(path, func(t *testing.T) {
			s := newSpeaker(t, 200, "Hel", "lo.")
			s.hold = make(chan struct{})
			h := chatServer(t, s, nil)
			conn, _ := dial(t, h.addr)
			body := `{"message":"hi"}`
			_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				path, h.access.key, len(body), body)
			select {
			case <-s.held:
			case <-time.After(time.Minute):
				t.Fatal("the provider was never called")
			}
			start := time.Now()
			_ = conn.Close()
			select {
			case <-s.left:
				if took := time.Since(start); took > 20*time.Second {
					t.Errorf("the provider was released after %v", took)
				}
			case <-time.After(time.Minute):
				t.Fatal("the provider was never released")
			}
			// A new run can start, and the partial answer has been stored.
			testkit.Eventually(t, "the run is cancelled", func() bool {
				return h.do(t, call{method: "DELETE", path: "/v1/conversations/conv_0000000000000001"}).StatusCode == 200
			})
		})
	}
}

func TestInvalidChatsAreRefusedBeforeTheyStart(t *testing.T) {
	s := newSpeaker(t, 200, "Hel", "lo.")
	s.hold = make(chan struct{})
	h := chatServer(t, s, nil)
	resp := h.stream(t, `{"message":"hi"}`) // this run continues during the requests below
	first := bufio.NewReader(resp.Body)
	if _, err := first.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	silent := open(t, newAccess(), nil) // without a model
	for _, path := range []string{"/v1/chat", "/v1/chat/stream"} {
		for body, want := range map[string]string{
			`{}`:                                     "400 bad_request",
			`{"message":" \n"}`:                      "400 bad_request",
			`{"message":1}`:                          "400 bad_request",
			`{"message":"x","maxIterations":0}`:      "400 bad_request",
			`{"message":"x","allowedTools":["[a"]}`:  "400 bad_request",
			`{"message":"x","metadata":[]}`:          "400 bad_request",
			`{"message":"x","model":"nobody:m"}`:     "400 bad_request",
			`{"message":"x","model":"local:\u0000"}`: "400 bad_request",
			`{"message":"x","conversationId":"conv_00000000000000ff"}`: "404 not_found",
			`{"message":"x","conversationId":"conv_0000000000000001"}`: "409 run_in_progress",
		} {
			r := h.do(t, call{method: "POST", path: path, body: body})
			if got := fmt.Sprint(r.StatusCode, " ", r.code()); got != want || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s: %s %s", path, body, got, r.body)
			}
		}
		r := silent.do(t, call{method: "POST", path: path, body: `{"message":"hi"}`})
		if r.StatusCode != 503 || r.code() != "model_not_configured" || !strings.Contains(r.body, "models.default") || !strings.Contains(r.body, "ANTHROPIC_API_KEY") || r.Header.Get("Retry-After") != "" {
			t.Errorf("without a model: %d %s", r.StatusCode, r.body)
		}
	}
	close(s.hold)
	_, _ = io.Copy(io.Discard, first)
	if r := h.do(t, call{method: "POST", path: "/v1/chat", body: `{"message":"x","conversationId":"conv_0000000000000001"}`}); r.StatusCode != 200 {
		t.Errorf("after done: %d %s", r.StatusCode, r.body)
	}
}

func TestAProviderErrorIsAStatusOrAnEvent(t *testing.T) {
	h := chatServer(t, newSpeaker(t, 401), nil)
	if r := h.do(t, call{method: "POST", path: "/v1/chat", body: `{"message":"x"}`}); r.StatusCode != 502 || r.code() != "provider_auth_error" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	var last sentEvent
	var names []string
	for e := range readEvents(h.stream(t, `{"message":"x"}`).Body) {
		last, names = e, append(names, e.name)
	}
	if !slices.Equal(names, []string{"chat.start", "error"}) || !strings.HasPrefix(last.data, `{"error":"provider_auth_error","message":"`) {
		t.Errorf("%v, last %s", names, last.data)
	}
}

func TestOnlyTheOwnerOfAConversationSeesIt(t *testing.T) {
	h := chatServer(t, newSpeaker(t, 200, "Hi."), nil)
	h.access.user("bob", core.RoleMember, core.Workspace{ID: core.DefaultWorkspaceID, Name: "Default", Role: core.RoleMember})
	h.do(t, call{method: "POST", path: "/v1/chat", body: `{"message":"secret"}`})
	const id = "/v1/conversations/conv_0000000000000001"
	bob := map[string]string{"Authorization": "Bearer bob"}
	for _, c := range []call{
		{method: "GET", path: id + "/history"}, {method: "GET", path: id + "/queue"}, {method: "PATCH", path: id, body: `{"title":"x"}`}, {method: "POST", path: id + "/fork"}, {method: "DELETE", path: id},
		{method: "POST", path: "/v1/chat", body: `{"message":"x","conversationId":"conv_0000000000000001"}`},
	} {
		c.header = bob
		other := c
		other.path, other.body = strings.Replace(c.path, "0001", "00aa", 1), strings.Replace(c.body, "0001", "00aa", 1)
		r, none := h.do(t, c), h.do(t, other)
		if r.StatusCode != 404 || r.body != none.body || none.StatusCode != 404 {
			t.Errorf("%s %s: %d %s, one that does not exist: %d %s", c.method, c.path, r.StatusCode, r.body, none.StatusCode, none.body)
		}
	}
	if r := h.do(t, call{method: "GET", path: "/v1/conversations", header: bob}); !strings.Contains(r.body, `"totalCount":0`) {
		t.Errorf("bob's list: %s", r.body)
	}
}

// Each response is checked against the OpenAPI document.
func TestChatResponsesMatchTheOpenAPIDocument(t *testing.T) {
	h := chatServer(t, newSpeaker(t, 200, "Hi."), nil)
	router, err := gorillamux.NewRouter(document(t, h))
	if err != nil {
		t.Fatal(err)
	}
	cost := 0.5
	totals := core.UsageTotals{InputTokens: 1, CostUSD: &cost}
	h.conversations.report = core.UsageReport{Totals: totals, Models: []core.ModelUsage{{Model: "a:b", UsageTotals: totals}}, Breakdown: []core.GroupUsage{{Key: "2026-01-02"}}}
	const id = "/v1/conversations/conv_0000000000000001"
	for _, c := range []struct {
		call   call
		status int
		want   string
	}{
		{call{method: "POST", path: "/v1/chat", body: `{"message":"hi","metadata":{"a":1}}`}, 200, `"model":"local:m"`},
		{call{method: "POST", path: "/v1/chat", body: `{"message":"again","conversationId":"conv_0000000000000001"}`}, 200, `"response":"Hi."`},
		{call{method: "GET", path: "/v1/conversations?limit=1&sortBy=createdAt&search=hi"}, 200, `"messageCount":4,"preview":"Hi."`},
		{call{method: "GET", path: "/v1/conversations?limit=0"}, 400, ""},
		{call{method: "GET", path: "/v1/conversations?limit=101"}, 400, ""},
		{call{method: "GET", path: "/v1/conversations?limit=x"}, 400, ""},
		{call{method: "GET", path: id + "/history"}, 200, `"role":"user","content":"hi"`},
		{call{method: "GET", path: id + "/queue"}, 200, `{"conversationId":"conv_0000000000000001","queued":null}`},
		{call{method: "DELETE", path: id + "/queue"}, 404, ""},
		{call{method: "PATCH", path: id, body: `{"title":" A title "}`}, 200, `"title":"A title"`},
		{call{method: "PATCH", path: id, body: `{"metadata":{"b":2}}`}, 200, `"lastModel":"local:m","metadata":{"b":2}`},
		{call{method: "PATCH", path: id, body: `{}`}, 400, ""},
		{call{method: "PATCH", path: id, body: `{"title":""}`}, 400, ""},
		{call{method: "PATCH", path: id, body: `{"metadata":"x"}`}, 400, ""},
		{call{method: "POST", path: id + "/fork", body: `{"atMessage":1}`}, 200, `"id":"conv_0000000000000002"`},
		{call{method: "POST", path: id + "/fork"}, 200, `"id":"conv_0000000000000003"`},
		{call{method: "POST", path: id + "/fork", body: `{"atMessage":-1}`}, 400, ""},
		{call{method: "POST", path: id + "/fork", body: `{"atMessage":"x"}`}, 400, ""},
		{call{method: "GET", path: "/v1/conversations/conv_0000000000000002/history"}, 200, `"messages":[{"role":"user","content":"hi","timestamp":`},
		{call{method: "GET", path: "/v1/usage?period=week&groupBy=model"}, 200, `"costUsd":0.5`},
		{call{method: "GET", path: "/v1/usage?from=2026-01-01&to=2026-01-31"}, 200, `"period":{"from":"2026-01-01T00:00:00.000Z","to":"2026-02-01T00:00:00.000Z"}`},
		{call{method: "GET", path: "/v1/usage?period=year"}, 400, ""},
		{call{method: "GET", path: "/v1/usage?groupBy=skill"}, 400, ""},
		{call{method: "GET", path: "/v1/usage?from=yesterday"}, 400, ""},
		{call{method: "GET", path: "/v1/usage?from=2026-02-01&to=2026-01-01"}, 400, ""},
		{call{method: "GET", path: "/v1/skills"}, 200, `"skills":[]`},
		{call{method: "GET", path: "/v1/workspace"}, 200, `"model":"local:m"`},
		{call{method: "GET", path: "/v1/bootstrap"}, 200, `"recentConversations":[{"id":"conv_0000000000000003"`},
		{call{method: "DELETE", path: id}, 200, `{"id":"conv_0000000000000001","deleted":true}`},
		{call{method: "DELETE", path: id}, 404, ""},
		{call{method: "GET", path: id + "/history"}, 404, ""},
	} {
		t.Run(c.call.method+" "+c.call.path+" "+c.call.body, func(t *testing.T) {
			r := h.do(t, c.call)
			if r.StatusCode != c.status || !strings.Contains(r.body, c.want) {
				t.Fatalf("%d %s", r.StatusCode, r.body)
			}
			checkDocumented(t, router, c.call, r)
		})
	}
}

func TestAMemberSeesOnlyTheirOwnUsage(t *testing.T) {
	h := chatServer(t, newSpeaker(t, 200, "Hi."), nil)
	h.access.user("bob", core.RoleMember, core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleMember})
	for who, user := range map[string]string{"": "", "bob": "bob"} {
		header := map[string]string{}
		if who != "" {
			header["Authorization"] = "Bearer " + who
		}
		h.do(t, call{method: "GET", path: "/v1/usage", header: header})
		q, ok := h.conversations.asked[len(h.conversations.asked)-1].(core.UsageQuery)
		if !ok || q.User != user || q.Workspace != core.DefaultWorkspaceID {
			t.Errorf("%q asked for %+v", who, q)
		}
	}
}

// stream starts a chat stream, which is closed when the test ends.
func (h *testServer) stream(t *testing.T, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+h.addr+"/v1/chat/stream", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+h.access.key)
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

type sentEvent struct{ name, data string }

// readEvents reads a stream until it ends. It yields a comment as an event without a name.
func readEvents(body io.Reader) func(func(sentEvent) bool) {
	return func(yield func(sentEvent) bool) {
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, 1<<20)
		var e sentEvent
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ":")
			value = strings.TrimPrefix(value, " ")
			switch {
			case lines.Text() == "" && (e.name != "" || e.data == "comment"):
				if !yield(e) {
					return
				}
				e = sentEvent{}
			case lines.Text() == "":
			case name == "":
				e = sentEvent{data: "comment"}
			case name == "event":
				e.name = value
			case name == "data":
				e.data += value
			}
		}
	}
}
