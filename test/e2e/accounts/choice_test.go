package accounts

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// linkTwo links two accounts: work, which becomes the default, and home.
func linkTwo(t *testing.T, s *harness.Server) {
	t.Helper()
	for _, name := range []string{"work", "home"} {
		link(t, s, harness.NewBrowser(t), name)
	}
}

func TestAClientIsAskedOnceWhichOfTwoAccountsToUse(t *testing.T) {
	t.Parallel()
	a := harness.StartAccountApp(t, 600)
	s := serve(t, a)
	linkTwo(t, s)

	t.Run("a client that shows forms", func(t *testing.T) {
		var asked []string
		action := "decline"
		client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
			ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				schema, err := json.Marshal(r.Params.RequestedSchema)
				asked = append(asked, string(schema))
				return &mcp.ElicitResult{Action: action, Content: map[string]any{"account": "home"}}, err
			},
		})
		c, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.URL + "/mcp/me"}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		before := a.Seen("change alice")
		if text, failed := callWith(t, c, "far__change"); !failed || !strings.Contains(text, "did not choose one") {
			t.Errorf("declined: %q", text)
		}
		if text, failed := callWith(t, c, "far__whoami"); failed {
			t.Errorf("a tool that only reads failed: %q", text)
		}
		action = "accept"
		for range 2 {
			if text, failed := callWith(t, c, "far__change"); failed || text != "alice" {
				t.Errorf("got %q", text)
			}
		}
		if text, failed := callWith(t, c, "far_work__change"); failed || text != "alice" {
			t.Errorf("a call that names its account: %q", text)
		}
		if len(asked) != 2 || !strings.Contains(asked[1], `"enum":["home","work"]`) && !strings.Contains(asked[1], `"enum":["work","home"]`) {
			t.Errorf("asked %q", asked)
		}
		if n := a.Seen("change alice") - before; n != 3 {
			t.Errorf("the app was called %d times", n)
		}
	})
	t.Run("a client that shows no forms", func(t *testing.T) {
		if text, failed := callWith(t, session(t, s, nil), "far__change"); !failed || !strings.Contains(text, "work") || !strings.Contains(text, "home") {
			t.Errorf("got %q", text)
		}
	})
	t.Run("a client without a session", func(t *testing.T) {
		before := a.Seen("change alice")
		var asked struct {
			Result struct {
				InputRequests map[string]struct{ Params struct{ Mode string } }
			}
		}
		first := statelessCall(t, s, `{"form":{}}`, "")
		if err := json.Unmarshal([]byte(harness.LastMessage(first.Body)), &asked); err != nil || len(asked.Result.InputRequests) != 1 {
			t.Fatalf("%d %s", first.Status, first.Body)
		}
		for name, request := range asked.Result.InputRequests {
			if request.Params.Mode != "form" {
				t.Errorf("asked for %+v", request)
			}
			answer := fmt.Sprintf(`,"inputResponses":{%q:{"action":"accept","content":{"account":"home"}}}`, name)
			if again := statelessCall(t, s, `{"form":{}}`, answer); !strings.Contains(again.Body, `"text":"alice"`) {
				t.Errorf("%d %s", again.Status, again.Body)
			}
		}
		if n := a.Seen("change alice") - before; n != 1 {
			t.Errorf("the app was called %d times", n)
		}
	})
}

func TestAConversationRemembersTheAccountThatItsUserChose(t *testing.T) {
	t.Parallel()
	a := harness.StartAccountApp(t, 600)
	p := testenv.StartModelProvider(t)
	s := serve(t, a, harness.Models(p, "anthropic"))
	linkTwo(t, s)
	p.Say(t,
		`{"match":{"toolCallId":"c1"},"response":{"content":"Done."}}`,
		`{"match":{"toolCallId":"c2"},"response":{"content":"Done."}}`,
		`{"match":{"toolCallId":"c3"},"response":{"content":"Done."}}`,
		`{"match":{"userMessage":"once"},"response":{"toolCalls":[{"id":"c1","name":"far__change","arguments":{}}]}}`,
		`{"match":{"userMessage":"twice"},"response":{"toolCalls":[{"id":"c2","name":"far__change","arguments":{}}]}}`,
		`{"match":{"userMessage":"read"},"response":{"toolCalls":[{"id":"c3","name":"far__whoami","arguments":{}}]}}`,
	)
	var conversation string
	say := func(message string) (asked int, account string) {
		t.Helper()
		body, _ := json.Marshal(map[string]string{"message": message, "conversationId": conversation})
		s.Chat(t.Context(), t, string(body), func(e harness.ChatEvent) bool {
			switch e.Name {
			case "chat.start":
				conversation, _ = e.Data["conversationId"].(string)
			case "elicitation.request":
				if asked++; e.Data["server"] != "system" || e.Data["tool"] != "far__change" {
					t.Errorf("asked %v", e.Data)
				}
				s.Reply(t, e.Data, `{"action":"accept","content":{"account":"other"}}`, 400, "invalid_input")
				s.Reply(t, e.Data, `{"action":"accept","content":{"account":"home"}}`, 200, "accept")
			case "tool.done":
				account, _ = e.Data["account"].(string)
			}
			return false
		})
		return asked, account
	}
	if asked, account := say("once"); asked != 1 || account != "home" {
		t.Errorf("the first call asked %d times and used %q", asked, account)
	}
	s.Stop()
	s.Start()
	s.WaitForStatus(t, "far", "running")
	if asked, account := say("twice"); asked != 0 || account != "home" {
		t.Errorf("the second call asked %d times and used %q", asked, account)
	}
	if asked, account := say("read"); asked != 0 || account != "home" {
		t.Errorf("a call that only reads asked %d times and used %q", asked, account)
	}
	if history := s.Do(t, "GET", "/v1/conversations/"+conversation+"/history", nil); strings.Count(history.Body, `"account":"home"`) != 3 {
		t.Errorf("the history: %d %s", history.Status, history.Body)
	}
	conversation = ""
	if asked, _ := say("once"); asked != 1 {
		t.Errorf("another conversation asked %d times", asked)
	}
}

func TestAnApprovalNamesTheAccount(t *testing.T) {
	t.Parallel()
	a := harness.StartAccountApp(t, 600)
	s := serve(t, a, harness.Config("tools: {approve: [far__change], approvalWaitSeconds: 1}\n"))
	linkTwo(t, s)
	if held := s.Do(t, "POST", "/v1/tools/call", map[string]any{"tool": "far_home__change"}); !strings.Contains(held.Body, "approval_pending") {
		t.Fatalf("%d %s", held.Status, held.Body)
	}
	var listed struct {
		Approvals []struct{ Tool, Account string }
	}
	got := s.Do(t, "GET", "/v1/approvals", nil)
	if err := json.Unmarshal([]byte(got.Body), &listed); err != nil || got.Status != http.StatusOK {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	if !slices.Contains(listed.Approvals, struct{ Tool, Account string }{"far__change", "home"}) {
		t.Errorf("the approvals: %s", got.Body)
	}
}
