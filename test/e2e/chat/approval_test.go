package chat

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// The model gets the reason why its call was refused. The person who decides sees all digits of the arguments. When a
// client disconnects from a chat, the chat's pending approval ends.
func TestTheModelGetsTheReasonForARefusalAndAbandonedApprovalsEnd(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	s := harness.Serve(t, harness.Flags("--sample"),
		harness.Config(harness.ModelsYAML(p, "anthropic")+"tools: {approve: [sample__greet], approvalWaitSeconds: 60}\n"))
	s.WaitForStatus(t, "sample", "running")
	harness.ScriptToolCall(t, p, "sample__greet", `{"name":"number 9007199254740993"}`)
	l := s.Listen(t)
	next := func(name string) (data map[string]any) {
		t.Helper()
		for {
			if found, raw, _ := strings.Cut(l.Next(t), " "); found == name {
				if err := json.Unmarshal([]byte(raw), &data); err != nil {
					t.Fatal(err)
				}
				return data
			}
		}
	}
	begin := func(ctx context.Context) (begun chan struct{}, ended chan string) {
		begun, ended = make(chan struct{}, 1), make(chan string, 1)
		go func() {
			output := ""
			s.Chat(ctx, t, `{"message":"go"}`, func(e harness.ChatEvent) bool {
				switch e.Name {
				case "tool.start":
					begun <- struct{}{}
				case "tool.done":
					output, _ = e.Data["output"].(string)
				}
				return false
			})
			ended <- output
		}()
		return begun, ended
	}

	_, ended := begin(t.Context())
	id, _ := next("approval.requested")["id"].(string)
	if a := s.Do(t, "POST", "/v1/approvals/"+id, map[string]any{"decision": "refuse", "reason": "Greet nobody today."}); a.Status != 200 || !strings.Contains(a.Body, "9007199254740993") {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if output, _ := testkit.Receive(t, "the end of the chat", ended); !strings.Contains(output, "Greet nobody today.") {
		t.Errorf("the model got %q", output)
	}
	asked, _ := json.Marshal(p.Journal(t))
	if !strings.Contains(string(asked), "Greet nobody today.") {
		t.Errorf("the provider did not get the reason: %s", asked)
	}

	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	begun, ended := begin(ctx)
	testkit.Receive(t, "the tool call", begun)
	id, _ = next("approval.requested")["id"].(string)
	leave()
	testkit.Receive(t, "the end of the abandoned chat", ended)
	if data := next("approval.ended"); data["id"] != id || data["state"] != "cancelled" {
		t.Errorf("the event has %v, want the end of %s", data, id)
	}
}
