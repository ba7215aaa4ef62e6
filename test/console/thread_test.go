package console

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Each version of a message is in its own conversation, with arrows between the versions. Another model can retry an
// answer, formulas are rendered, and long results can be searched. Apps can be switched off in one chat, and a workspace
// has instructions. Shortcuts, notifications and the deletion of several conversations also work.
func TestAConversationHasVersionsFormulasAppsAndShortcuts(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(answerThread))
	t.Cleanup(provider.Close)
	s := serve(t, "models:\n  default: local:test\n  providers:\n    local: {type: openai, apiKey: k, baseUrl: '"+provider.URL+"'}\n", "--sample")
	browse(t, "thread.mjs", s, nil)
}

// answerThread plays the model for thread.mjs.
func answerThread(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var asked struct {
		Model    string
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools json.RawMessage
	}
	_ = json.Unmarshal(body, &asked)
	last := asked.Messages[len(asked.Messages)-1]
	if string(last.Content) == `"fail once more"` {
		http.Error(w, `{"error":{"message":"not today"}}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(text string) {
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", quoted(text))
	}
	reason := "stop"
	switch question := string(last.Content); {
	case strings.Contains(string(body), "Write a title"):
		say("A title")
	case last.Role == "tool":
		say("It was echoed.")
	case strings.Contains(question, "echo a lot"):
		lines := make([]string, 200)
		for i := range lines {
			lines[i] = fmt.Sprintf("line %d of the result", i+1)
		}
		arguments := quoted(`{"text":` + quoted(strings.Join(lines, "\n")) + `}`)
		_, _ = fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function",`+
			`"function":{"name":"sample__echo","arguments":%s}}]}}]}`+"\n\n", arguments)
		reason = "tool_calls"
	case strings.Contains(question, "which tools"):
		tools, instructions := "No tools, ", "no instructions."
		if strings.Contains(string(asked.Tools), "sample__") {
			tools = "Some tools, "
		}
		if strings.Contains(string(body), "kroner") {
			instructions = "and instructions."
		}
		say(tools + instructions)
	case strings.Contains(question, "a table"):
		say("| Name | Notes |\n|---|---|\n| Supercalifragilistic | " + strings.Repeat("some more notes ", 10) + " |\n")
	case strings.Contains(question, "say nothing"):
	case strings.Contains(question, "formula"):
		say("The root is $x = \\frac{-b}{2a}$, and it costs $5 to $10.\n\n\\[\nE = mc^2\n\\]\n")
	default:
		say("Seen by " + asked.Model + ".")
	}
	_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", reason)
}
