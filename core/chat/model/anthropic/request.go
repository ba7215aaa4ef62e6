package anthropic

import (
	"encoding/json"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// request is the body of a call, with the members that this package uses.
type request struct {
	Model     string    `json:"model"`
	MaxTokens int       `json:"max_tokens"`
	Stream    bool      `json:"stream"`
	System    []*block  `json:"system,omitempty"`
	Messages  []message `json:"messages"`
	Tools     []tool    `json:"tools,omitempty"`

	Thinking     *thinking     `json:"thinking,omitempty"`
	OutputConfig *outputConfig `json:"output_config,omitempty"`
}

// thinking sets how the model thinks: adaptive, or, for models that do not support that, enabled with a token budget.
type thinking struct {
	Type    string `json:"type"`
	Budget  int    `json:"budget_tokens,omitempty"`
	Display string `json:"display,omitempty"`
}

type outputConfig struct {
	Effort string `json:"effort"`
}

type message struct {
	Role    model.Role `json:"role"`
	Content []any      `json:"content"` // *block, or json.RawMessage that is sent back unchanged
}

type tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema"`
	CacheControl *cacheControl   `json:"cache_control,omitempty"`
}

type cacheControl struct {
	Type string `json:"type"`
}

func newRequest(name string, r model.Request, d dialect) request {
	if d.maxTokens > 0 {
		r.MaxTokens = min(r.MaxTokens, d.maxTokens)
	}
	body := request{Model: name, MaxTokens: r.MaxTokens, Stream: true, Messages: []message{}}
	for _, part := range r.System {
		body.System = append(body.System, text(part))
	}
	for _, t := range r.Tools {
		body.Tools = append(body.Tools, tool{Name: model.SafeName(t.Name), Description: t.Description, InputSchema: model.SafeSchema(t.Schema)})
	}
	for _, m := range r.Messages {
		content := []any{}
		for _, b := range m.Blocks {
			if len(b.Raw) > 0 && (b.Kind == model.Reasoning || b.Kind == model.Opaque) {
				content = append(content, b.Raw)
			} else if b.Kind != model.Reasoning && b.Kind != model.Opaque {
				content = append(content, newBlock(b))
			}
		}
		body.Messages = append(body.Messages, message{m.Role, content})
	}
	body.setEffort(r.Effort, d)
	if !d.noCache {
		body.setCacheBreakpoints()
	}
	return body
}

// setCacheBreakpoints marks the ends of the tools, the system prompt and the messages, which the next call sends
// again. The vendor caches everything up to a mark for 5 minutes.
func (r *request) setCacheBreakpoints() {
	mark := &cacheControl{"ephemeral"}
	if n := len(r.Tools); n > 0 {
		r.Tools[n-1].CacheControl = mark
	}
	if n := len(r.System); n > 0 {
		r.System[n-1].CacheControl = mark
	}
	if n := len(r.Messages); n > 0 {
		if content := r.Messages[n-1].Content; len(content) > 0 {
			if last, ok := content[len(content)-1].(*block); ok && (last.Type == "text" || last.Type == "tool_result") {
				last.CacheControl = mark
			}
		}
	}
}

// effortWay is one way of specifying a model's effort. The ways are tried in this order.
type effortWay int

const (
	adaptive effortWay = iota
	budgeted
	unable
)

// minBudget is the smallest budget that the vendor accepts, in tokens.
const minBudget = 1024

// setEffort sets the effort in the way that the model accepts.
func (r *request) setEffort(effort string, d dialect) {
	if effort == "" || effort == "none" || d.way >= unable {
		return
	}
	if d.way == adaptive {
		if effort == "minimal" {
			effort = "low"
		}
		r.Thinking, r.OutputConfig = &thinking{Type: "adaptive", Display: "summarized"}, &outputConfig{d.efforts.Of(effort)}
		return
	}
	budget := map[string]int{"minimal": minBudget, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 65536}[effort]
	if budget = min(budget, r.MaxTokens-minBudget); budget >= minBudget {
		r.Thinking = &thinking{Type: "enabled", Budget: budget}
	}
}
