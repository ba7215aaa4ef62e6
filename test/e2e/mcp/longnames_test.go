package mcp

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestToolsAndPromptsOfAnAppWithALongNameWorkUnderAllTheirNames(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	app, other := strings.Repeat("a", 60), strings.Repeat("b", 62)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "plain", harness.Plain), "serverName": app})
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "offering", harness.Offering), "serverName": other})
	c := connect(t, s, "2025-11-25")
	tools, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	called := 0
	for _, tool := range tools.Tools {
		original, shortened := tool.Meta["ropewalk/originalName"]
		if len(tool.Name) > 64 || !strings.HasPrefix(tool.Name, "aaa") || !shortened || original != "echo" {
			continue
		}
		called++
		for _, body := range []map[string]any{
			{"server": app, "tool": "echo"}, {"server": app, "tool": tool.Name}, {"tool": tool.Name}, {"tool": app + "__echo"},
		} {
			body["arguments"] = map[string]any{"text": "hello"}
			if a := s.Do(t, "POST", "/v1/tools/call", body); a.Status != 200 || !strings.Contains(a.Body, "hello") {
				t.Errorf("%v: %d %s", body, a.Status, a.Body)
			}
		}
		c.call(t, tool.Name, "hello")
	}
	if called != 1 {
		t.Errorf("%d tools have the original name echo, want 1", called)
	}
	prompts, err := c.ListPrompts(t.Context(), nil)
	if err != nil || len(prompts.Prompts) != 1 || len(prompts.Prompts[0].Name) != 64 || prompts.Prompts[0].Meta["ropewalk/originalName"] != "ask" {
		t.Fatalf("prompts: %+v, %v", prompts, err)
	}
	for _, name := range []string{prompts.Prompts[0].Name, other + "__ask"} {
		got, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name})
		if err != nil || len(got.Messages) != 1 {
			t.Errorf("prompt %s: %+v, %v", name, got, err)
		}
	}
}
