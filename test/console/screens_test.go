package console

import (
	"fmt"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// Every screen passes axe-core and fits the page, in both themes, at widths of 1,440 and 375 px.
func TestEveryScreenIsAccessibleInBothThemesAtBothWidths(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	answer := "Here is **the budget** of the week.\n\n| Day | Spent |\n|---|---:|\n| Monday | 12 |\n| Tuesday | 31 |\n\n" +
		"1. Most of it went to `travel`\n2. Nothing is left open\n\n```python\ntotal = sum([12, 31])\n```\n"
	p.Say(t,
		`{"match":{"systemMessage":"Write a title"},"response":{"content":"The budget of the week"}}`,
		`{"match":{"toolCallId":"g1"},"response":{"content":`+quoted(answer)+`,"usage":{"prompt_tokens":2400,"completion_tokens":310}}}`,
		`{"match":{"userMessage":"budget"},"response":{"content":"I look at it.","toolCalls":[{"id":"g1","name":"sample__echo","arguments":{"text":"budget"}}],"usage":{"prompt_tokens":1800,"completion_tokens":90}}}`,
		`{"match":{},"response":{"content":"Yes.","usage":{"prompt_tokens":300,"completion_tokens":20}}}`,
	)
	s := serve(t, models(p), "--sample")
	said := s.Object(t, "POST", "/v1/chat", map[string]any{"message": "Show me the budget of the week"})
	s.Object(t, "POST", "/v1/chat", map[string]any{"message": "Is anything left open?"})
	browse(t, "screens.mjs", s, map[string]any{"conversation": said["conversationId"], "app": "sample", "tool": "sample__greet"})
}

// Every screen works for each role, at three widths and at 200% zoom.
func TestEveryScreenWorksForEachRole(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	p.Say(t,
		`{"match":{"systemMessage":"Write a title"},"response":{"content":"A greeting"}}`,
		`{"match":{"toolCallId":"g1"},"response":{"content":"You were greeted.","usage":{"prompt_tokens":240,"completion_tokens":31}}}`,
		`{"match":{"userMessage":"greet"},"response":{"toolCalls":[{"id":"g1","name":"sample__echo","arguments":{"text":"hello"}}]}}`,
	)
	port := testenv.FreePort(t)
	at := fmt.Sprintf("http://localhost:%d", port)
	provider := testenv.StartOpenIDProviderWithForm(t, at+"/v1/auth/callback")
	s := serve(t, fmt.Sprintf(`audit: {file: audit.log}
auth:
  adapter: oidc
  issuer: %s
  clientId: ropewalk
  redirectUri: %s/v1/auth/callback
  admins: [ada@example.com]
  join: {workspace: default, role: member}
%s`, provider.Issuer, at, models(p)), "--sample", "--port", fmt.Sprint(port))
	browse(t, "roles.mjs", s, map[string]any{"app": "sample", "tool": "sample__greet"})
}
