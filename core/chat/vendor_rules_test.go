package chat_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// sent is a request to a vendor.
type sent struct {
	members  map[string]json.RawMessage
	System   []struct{ Text string } `json:"system"`
	Messages []sentMessage           `json:"messages"`
	Tools    []struct {
		Name        string
		InputSchema json.RawMessage `json:"input_schema"`
		Function    struct {
			Name, Description string
			Parameters        json.RawMessage
		}
	} `json:"tools"`
}

type sentMessage struct {
	Role       string
	Content    json.RawMessage
	ToolCalls  []sentCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
	members    map[string]json.RawMessage
}

type sentCall struct {
	ID           string
	Function     struct{ Name, Arguments string }
	ExtraContent json.RawMessage `json:"extra_content"`
}

func (m *sentMessage) UnmarshalJSON(raw []byte) error {
	type plain sentMessage
	if err := json.Unmarshal(raw, (*plain)(m)); err != nil {
		return err
	}
	return json.Unmarshal(raw, &m.members)
}

// sentPart is a part of a message's content.
type sentPart struct {
	Type      string
	Text      string
	ID        string
	ToolUseID string `json:"tool_use_id"`
	Thinking  string
	Signature string
	Content   json.RawMessage
	IsError   bool `json:"is_error"`
}

// parts returns the parts of the content; a string becomes one text part.
func (m sentMessage) parts() (parts []sentPart) {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return []sentPart{{Type: "text", Text: text}}
	}
	_ = json.Unmarshal(m.Content, &parts)
	return parts
}

// calls returns the ids of the tool calls of an assistant's message in either protocol.
func (m sentMessage) calls() (ids []string) {
	for _, c := range m.ToolCalls {
		ids = append(ids, c.ID)
	}
	for _, p := range m.parts() {
		if p.Type == "tool_use" {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// results returns the ids of the calls that a message answers.
func (m sentMessage) results() (ids []string) {
	if m.ToolCallID != "" {
		ids = append(ids, m.ToolCallID)
	}
	for _, p := range m.parts() {
		if p.Type == "tool_result" {
			ids = append(ids, p.ToolUseID)
		}
	}
	return ids
}

// refusal describes why a request is refused.
type refusal struct {
	words, member string
	status        int
}

// check returns why the vendor refuses a request, or nil.
func (s *strict) check(r *http.Request, body []byte, in sent, others map[string]*strict) *refusal {
	for _, find := range []func(*http.Request, sent) *refusal{s.checkMembers, s.checkTools, s.checkOrder, s.checkParts, s.checkReasoning} {
		if why := find(r, in); why != nil {
			return why
		}
	}
	for id, other := range others {
		if id == s.id {
			continue
		}
		for _, mark := range other.marks {
			if strings.Contains(string(body), mark) {
				return &refusal{words: "it has what only " + other.name + " understands: " + mark}
			}
		}
	}
	return nil
}

func (s *strict) checkMembers(r *http.Request, in sent) *refusal {
	if got := cmp.Or(r.Header.Get(s.key), r.Header.Get("Authorization")); strings.TrimPrefix(got, "Bearer ") != "k" || s.query != r.URL.RawQuery || s.id == "anthropic" && r.Header.Get("Anthropic-Version") == "" {
		return &refusal{words: "the key, the version or the query is wrong", status: http.StatusUnauthorized}
	}
	for name := range in.members {
		other := name != s.limit && strings.HasPrefix(name, "max_") && s.members != ""
		if other || s.members != "" && !slices.Contains(strings.Fields(s.members), name) {
			return &refusal{words: fmt.Sprintf(s.unknown, name), member: name}
		}
	}
	if in.members[s.limit] == nil {
		return &refusal{words: s.limit + ": Field required", member: s.limit}
	}
	return nil
}

// checkTools checks names, descriptions and schemas.
func (s *strict) checkTools(_ *http.Request, in sent) *refusal {
	for i, t := range in.Tools {
		name, schema := t.Function.Name, t.Function.Parameters
		if s.id == "anthropic" {
			name, schema = t.Name, t.InputSchema
		}
		if !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString(name) {
			return &refusal{words: fmt.Sprintf("tools.%d.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'", i)}
		}
		if len(t.Function.Description) > 1024 {
			return &refusal{words: fmt.Sprintf("Invalid 'tools[%d].function.description': string too long.", i)}
		}
		if fault := schemaFault(schema, true); fault != "" {
			return &refusal{words: fmt.Sprintf("Invalid schema for function '%s': %s", name, fault)}
		}
		if s.tools != nil {
			if words := s.tools(name); words != "" {
				return &refusal{words: words}
			}
		}
	}
	return nil
}

// schemaFault returns what a vendor finds wrong with a schema. It combines what all of them refuse.
func schemaFault(raw json.RawMessage, root bool) string {
	var s map[string]json.RawMessage
	if json.Unmarshal(raw, &s) != nil {
		if string(raw) == "true" || string(raw) == "false" {
			return ""
		}
		return "a schema is not an object"
	}
	var kind string
	_ = json.Unmarshal(s["type"], &kind)
	if root && (kind != "object" || s["properties"] == nil || s["anyOf"] != nil || s["oneOf"] != nil || s["allOf"] != nil) {
		return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf' at the top level"
	}
	if s["type"] != nil && kind != "" && !slices.Contains(strings.Fields("object array string number integer boolean null"), kind) {
		return "'" + kind + "' is not valid under any of the given schemas"
	}
	if kind == "array" && s["items"] == nil && s["prefixItems"] == nil {
		return "array schema missing items"
	}
	var pattern string
	if _ = json.Unmarshal(s["pattern"], &pattern); s["pattern"] != nil && (!strings.HasPrefix(pattern, "^") || !strings.HasSuffix(pattern, "$") || regexp.MustCompile(`\\[A-Za-z0-9]|\(\?`).MatchString(pattern)) {
		return "Pattern must start with '^' and end with '$', and have no classes or groups of a dialect"
	}
	var required []string
	var properties map[string]json.RawMessage
	if s["required"] != nil && json.Unmarshal(s["required"], &required) != nil {
		return "'required' is not of type 'array'"
	}
	_ = json.Unmarshal(s["properties"], &properties)
	for _, name := range required {
		if properties[name] == nil && s["properties"] != nil {
			return "required: property is not defined: " + name
		}
	}
	for _, one := range properties {
		if fault := schemaFault(one, false); fault != "" {
			return fault
		}
	}
	if s["items"] != nil {
		return schemaFault(s["items"], false)
	}
	for _, word := range []string{"extends", "disallow", "divisibleBy", "additionalItems"} {
		if s[word] != nil {
			return "unknown keyword " + word
		}
	}
	return ""
}

// checkOrder checks that the results of all calls, and nothing else, directly follow the calls.
func (s *strict) checkOrder(_ *http.Request, in sent) *refusal {
	var open []string
	issued := map[string]bool{}
	for i, m := range in.Messages {
		results := m.results()
		if _, ok := m.members["content"]; !ok {
			return &refusal{words: fmt.Sprintf("Failed to deserialize the JSON body into the target type: messages[%d]: missing field `content`", i)}
		}
		for _, id := range m.calls() {
			if issued[id] {
				return &refusal{words: "messages: `tool_use` ids must be unique"}
			}
			issued[id] = true
		}
		for _, id := range results {
			if !slices.Contains(open, id) {
				return &refusal{words: "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"}
			}
			open = slices.DeleteFunc(open, func(o string) bool { return o == id })
		}
		if len(open) > 0 && len(results) == 0 {
			return &refusal{words: "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."}
		}
		if s.inTools && i > 0 && m.Role == "user" && in.Messages[i-1].Role == "tool" {
			return &refusal{words: "Unexpected role 'user' after role 'tool'"}
		}
		if s.id == "anthropic" && (i == 0 && m.Role != "user" || i > 0 && m.Role == in.Messages[i-1].Role) {
			return &refusal{words: "messages: roles must alternate, and the first must be user"}
		}
		open = append(open, m.calls()...)
		for _, id := range open {
			if !regexp.MustCompile(s.ids).MatchString(id) {
				return &refusal{words: "Tool call id was " + id + " but must be a-z, A-Z, 0-9, with a length of 9."}
			}
		}
	}
	if len(open) > 0 {
		return &refusal{words: "tool_use ids were found without tool_result blocks immediately after"}
	}
	return nil
}

// checkParts checks the parts of messages.
func (s *strict) checkParts(_ *http.Request, in sent) *refusal {
	for _, m := range in.Messages {
		for _, p := range m.parts() {
			allowed := s.parts
			switch {
			case m.Role == "assistant":
				allowed = "text tool_use thinking redacted_thinking"
			case m.Role == "tool" && !s.inTools:
				allowed = "text"
			}
			if !slices.Contains(strings.Fields(allowed), p.Type) {
				words := s.badPart
				if strings.Contains(words, "%s") {
					words = fmt.Sprintf(words, strings.TrimSuffix(p.Type, s.stripped()))
				}
				return &refusal{words: words, status: s.badParts}
			}
			if s.id == "anthropic" && p.Type == "text" && strings.TrimSpace(p.Text) == "" {
				return &refusal{words: "messages: text content blocks must contain non-whitespace text"}
			}
			if p.Type == "tool_result" && p.IsError && len(p.Content) == 0 {
				return &refusal{words: "content cannot be empty if `is_error` is true"}
			}
			if m.Role == "user" && (p.Type == "image_url" || p.Type == "image") {
				s.saw["image"] = true
				s.saw["result image"] = s.saw["result image"] || strings.Contains(string(m.Content), "The images of the result")
			}
			if m.Role == "tool" && p.Type == "image_url" || p.Type == "tool_result" && strings.Contains(string(p.Content), `"image"`) {
				s.saw["result image"] = true
			}
			if m.Role == "tool" && strings.Contains(p.Text, "The images of this result were left out") {
				s.saw["left out"] = true
			}
			if p.Type == "file" || p.Type == "document" {
				s.saw["file"] = true
			}
		}
	}
	return nil
}

// stripped returns the end of a part's type that the vendor leaves out of its messages.
func (s *strict) stripped() string {
	if s.badParts == http.StatusInternalServerError {
		return "_url"
	}
	return ""
}

// checkReasoning checks that what the vendor sent comes back byte for byte, and that nothing else comes with calls.
func (s *strict) checkReasoning(_ *http.Request, in sent) *refusal {
	for _, m := range in.Messages {
		calls := m.calls()
		if m.Role != "assistant" || len(calls) == 0 {
			continue
		}
		want, own := s.issued[calls[0]]
		if !own {
			want = s.foreign
		}
		if got := s.returned(m); got != want && s.reasons != "" {
			words := s.needs
			if words == "" {
				words = fmt.Sprintf("%s is %s, want %s", s.reasons, got, want)
			}
			return &refusal{words: words}
		}
		s.saw["reasoning"] = s.saw["reasoning"] || own && want != ""
		s.saw["parallel"] = s.saw["parallel"] || len(calls) > 1
	}
	s.saw["effort"] = s.saw["effort"] || in.members["reasoning_effort"] != nil || in.members["output_config"] != nil
	return nil
}

// returned returns what came back with an assistant's message, in the form in which it was issued.
func (s *strict) returned(m sentMessage) string {
	switch s.reasons {
	case "thinking":
		if p := m.parts()[0]; p.Type == "thinking" {
			return p.Thinking + p.Signature
		}
		return ""
	case "content":
		for _, p := range m.parts() {
			if p.Type == "thinking" {
				var raw []json.RawMessage
				_ = json.Unmarshal(m.Content, &raw)
				return string(raw[0])
			}
		}
		return ""
	case "extra_content":
		return string(m.ToolCalls[0].ExtraContent)
	}
	return string(m.members[s.reasons])
}
