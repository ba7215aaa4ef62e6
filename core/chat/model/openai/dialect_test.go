package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/chat/model/openai"
)

const accepted = `data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"

// askTwice calls a model of a server that refuses requests, and returns the bodies. refuse returns a status of 0 for a
// request that is accepted.
func askTwice(t *testing.T, r model.Request, refuse func(body string) (status int, words string)) (bodies []string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		raw, _ := io.ReadAll(request.Body)
		bodies = append(bodies, string(raw))
		if status, words := refuse(string(raw)); status != 0 {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, words)
			return
		}
		_, _ = io.WriteString(w, accepted)
	}))
	defer server.Close()
	p := openai.New(model.Settings{BaseURL: server.URL})
	defer p.Close()
	for range 2 {
		if _, err := p.Call(t.Context(), "m", r, model.Pieces{}); err != nil {
			t.Fatalf("%v after %s", err, bodies[len(bodies)-1])
		}
	}
	return bodies
}

// worked is a conversation with reasoning, a tool call and a picture given by URL.
func worked() model.Request {
	return model.Request{
		System: []string{"Be brief."}, MaxTokens: 8192, Effort: "max",
		Tools: []model.Tool{
			{Name: "look", Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"object","properties":{"const":{"const":1}},"additionalProperties":false},"y":{"type":["string","null"]},"z":{"type":"integer","enum":[7]}},"additionalProperties":false}`)},
			{Name: "now", Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
		},
		Messages: []model.Message{
			{Role: model.User, Blocks: []model.Block{{Kind: model.File, Name: "a.png", MIMEType: "image/png", URL: "https://example.com/a.png"}, {Kind: model.Text, Text: "look"}}},
			{Role: model.Assistant, Blocks: []model.Block{
				{Kind: model.Reasoning, Raw: json.RawMessage(`{"message":{"reasoning_content":"hm"}}`)},
				{Kind: model.ToolUse, ID: "c", Name: "look", Input: json.RawMessage(`{}`)},
			}},
			{Role: model.User, Blocks: []model.Block{{Kind: model.ToolResult, ID: "c", Text: "r"}}},
		},
	}
}

func TestWhatAServerRejectsIsLearnedAndRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		words   string
		refused string // what no request may have
		wanted  string // what the accepted request has
	}{
		"a limit above the model's":          {400, `{"error":{"message":"max_tokens is too large: 8192. This model supports at most 4096 completion tokens, whereas you provided 8192.","param":"max_tokens"}}`, `"max_tokens":8192`, `"max_tokens":4096`},
		"a limit outside a range":            {400, `{"error":{"message":"Invalid max_tokens value, the valid range of max_tokens is [1, 4096]"}}`, `"max_tokens":8192`, `"max_tokens":4096`},
		"a limit as long as the window":      {400, `{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 8192 tokens and your request has 10 input tokens (8192 > 8192 - 10)."}}`, `"max_tokens":8192`, `"max_tokens":2048`},
		"a limit that leaves no room":        {400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 8300 tokens (108 in the messages, 8192 in the completion)."}}`, `"max_tokens":8192`, `"max_tokens":2048`},
		"an effort":                          {400, `{"error":{"message":"Unsupported value: 'max' is not supported with the 'm' model. Supported values are: 'minimal', 'low', 'medium', and 'high'.","param":"reasoning_effort"}}`, `"max"`, `"reasoning_effort":"high"`},
		"every effort":                       {400, `{"error":{"message":"Argument not supported on this model: reasoningEffort"}}`, `reasoning_effort`, `"messages"`},
		"a system message":                   {400, `{"error":{"message":"System role not supported"}}`, `"system"`, `Be brief.`},
		"a developer's instruction":          {400, `[{"error":{"code":400,"message":"Developer instruction is not enabled for models/m"}}]`, `"system"`, `Be brief.`},
		"reasoning that it sent":             {400, `{"error":{"message":"'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]"}}`, `reasoning_content`, `"tool_calls"`},
		"an image by its address":            {400, `{"error":{"message":"invalid image input"}}`, `image_url`, `a.png was left out`},
		"a keyword of a schema":              {400, `[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"additionalProperties\" at 'tools[0].function_declarations[0].parameters': Cannot find field.\nInvalid JSON payload received. Unknown name \"const\" at 'tools[0].function_declarations[0].parameters.properties[0].value': Cannot find field."}}]`, `additionalProperties`, `"properties":{"const":{}}`},
		"a schema without properties":        {400, `[{"error":{"code":400,"message":"GenerateContentRequest.tools[0].function_declarations[1].parameters.properties: should be non-empty for OBJECT type"}}]`, `"properties":{}}`, `{"name":"now"}`},
		"a result without the tool's name":   {400, `[{"error":{"code":400,"message":"GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty."}}]`, `"tool_call_id":"c"}`, `"tool_call_id":"c","name":"look"`},
		"a list of types":                    {400, `[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"type\" at 'tools[0].function_declarations[0].parameters.properties[1].value': Proto field is not repeating, cannot start list."}}]`, `["string","null"]`, `"y":{"nullable":true,"type":"string"}`},
		"an enum of numbers":                 {400, `[{"error":{"code":400,"message":"Invalid value at 'tools[0].function_declarations[0].parameters.properties[2].value.enum[0]' (TYPE_STRING), 7"}}]`, `[7]`, `"z":{"type":"integer"}`},
		"no content":                         {400, `{"error":{"message":"<400> InternalError.Algo.InvalidParameter: The content field is a required field."}}`, `"content":null`, `"content":""`},
		"an effort that is on or off":        {400, "{\"error\":{\"message\":\"`reasoning_effort` must be one of `none` or `default`\"}}", `reasoning_effort`, `"messages"`},
		"an effort that Ollama rejects":      {400, `{"error":{"message":"think value \"max\" is not supported for this model"}}`, `reasoning_effort`, `"messages"`},
		"an assistant message with no words": {422, `{"error":{"message":"missing field content"}}`, `"assistant","tool_calls"`, `"content":null`},
	} {
		t.Run(name, func(t *testing.T) {
			bodies := askTwice(t, worked(), func(body string) (int, string) {
				if strings.Contains(body, c.refused) {
					return c.status, c.words
				}
				return 0, ""
			})
			if last := bodies[len(bodies)-1]; len(bodies) > 3 || !strings.Contains(last, c.wanted) {
				t.Errorf("%d requests, the last is %s", len(bodies), last)
			}
		})
	}
}

func TestACallOfAnotherModelGetsReasoningThatTheServerAccepts(t *testing.T) {
	r := worked()
	r.Messages[1].Blocks = r.Messages[1].Blocks[1:]
	const words = `{"error":{"message":"thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"}}`
	for name, wanted := range map[string]string{"empty": `"reasoning_content":""`, "a space": `"reasoning_content":" "`} {
		bodies := askTwice(t, r, func(body string) (int, string) {
			if !strings.Contains(body, wanted) {
				return 400, words
			}
			return 0, ""
		})
		if len(bodies) > 4 {
			t.Errorf("%s: %d requests", name, len(bodies))
		}
	}
}

func TestToolCallsWithoutToolsAreSentWithADefinitionIfTheServerWantsOne(t *testing.T) {
	r := worked()
	r.Tools = nil
	for _, words := range []string{
		"The toolConfig field must be defined when using toolUse and toolResult content blocks.",
		"litellm.UnsupportedParamsError: Bedrock doesn't support tool calling without `tools=` param specified.",
	} {
		askTwice(t, r, func(body string) (int, string) {
			if !strings.Contains(body, `"tools":[`) {
				return 400, `{"error":{"message":"` + words + `"}}`
			}
			return 0, ""
		})
	}
}

// One user's broken picture must not prevent other users from sending pictures to the model.
func TestAComplaintAboutOneFileIsNotRemembered(t *testing.T) {
	for words, remembered := range map[string]bool{
		"You uploaded an unsupported image. Please make sure your image is valid.":       false,
		"Unable to process input image. Please retry or report in https://example.com":   false,
		"Timeout while downloading https://example.com/a.png.":                           false,
		"This model does not support image inputs":                                       true,
		"unknown variant `image_url`, expected `text`":                                   true,
		"image input is not supported - hint: if this is unexpected, provide the mmproj": true,
	} {
		r := worked()
		r.Messages[0].Blocks[0] = model.Block{Kind: model.File, Name: "a.png", MIMEType: "image/png", Data: []byte("x")}
		if strings.Contains(words, "downloading") {
			r.Messages[0].Blocks[0] = model.Block{Kind: model.File, Name: "a.png", MIMEType: "image/png", URL: "https://example.com/a.png"}
		}
		bodies := askTwice(t, r, func(body string) (int, string) {
			if strings.Contains(body, `"image_url"`) {
				return 400, `{"error":{"message":"` + words + `"}}`
			}
			return 0, ""
		})
		if want := map[bool]int{true: 3, false: 4}[remembered]; len(bodies) != want {
			t.Errorf("%s: %d requests, want %d", words, len(bodies), want)
		}
	}
}
