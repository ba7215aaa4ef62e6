package anthropic

import "github.com/ropewalk/ropewalk/core/chat/model"

// request is the body of a call, with the members that this package uses.
type request struct {
	Model     string    `json:"model"`
	MaxTokens int       `json:"max_tokens"`
	Stream    bool      `json:"stream"`
	System    []*block  `json:"system,omitempty"`
	Messages  []message `json:"messages"`
	Tools     []tool    `json:"tools,omitempty"`
}

type message struct {
	Role    model.Role `json:"role"`
	Content []*block   `json:"content"`
}

type tool struct {
	Name         string         `json:"name"`
	Description  string         `json:"description,omitempty"`
	InputSchema  map[string]any `json:"input_schema"`
	CacheControl *cacheControl  `json:"cache_control,omitempty"`
}

type cacheControl struct {
	Type string `json:"type"`
}

func newRequest(name string, r model.Request) request {
	body := request{Model: name, MaxTokens: r.MaxTokens, Stream: true, Messages: []message{}}
	for _, part := range r.System {
		body.System = append(body.System, text(part))
	}
	for _, t := range r.Tools {
		body.Tools = append(body.Tools, tool{Name: model.SafeName(t.Name), Description: t.Description, InputSchema: model.SafeSchema(t.Schema)})
	}
	for _, m := range r.Messages {
		content := []*block{}
		for _, b := range m.Blocks {
			content = append(content, newBlock(b))
		}
		body.Messages = append(body.Messages, message{m.Role, content})
	}
	body.setCacheBreakpoints()
	return body
}

// setCacheBreakpoints marks the ends of the three stretches that the next call will send again. What is
// marked is kept for 5 minutes.
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
			if last := content[len(content)-1]; last.Type == "text" || last.Type == "tool_result" {
				last.CacheControl = mark
			}
		}
	}
}
