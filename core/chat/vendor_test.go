package chat_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/ropewalk/ropewalk/core/config"
)

// vendor describes a provider's wire format: what it refuses, and what it sends. One server plays all of them.
type vendor struct {
	name     string // in the documentation
	page     string // the vendor's page with these rules
	protocol string // the type of the provider in the configuration
	path     string // the endpoint's path after the provider's name
	query    string // the query that requests must have
	key      string // the header with the key

	members  string // the members that a request may have; "" for a vendor that ignores unknown ones
	limit    string // the member that limits the answer; the other one is refused
	unknown  string // its message about an unknown member, with the member's name
	status   int    // the status of its refusals
	failure  string // the body of a refusal, with its message and the member's name as JSON
	parts    string // the types of parts of a person's message
	badPart  string // its message about another part, with the part's type
	badParts int    // the status of that refusal; 0 means status
	inTools  bool   // images are allowed in tool messages, and a user message may not follow one
	ids      string // what the ids of tool calls match

	reasons  string // the member in which reasoning arrives and goes back
	needs    string // its message if reasoning does not come back with tool calls
	foreign  string // the value of reasons in tool calls of other models; "" if it must be absent
	whole    bool   // tool calls arrive in one piece
	comment  string // a comment that it sends while it works
	first    string // the first chunk, if it has no choices
	overload string // an answer with 503 or 429 that means: try again
}

// vendors returns the table of vendors.
func vendors() map[string]vendor {
	const openAIs = "model messages tools tool_choice parallel_tool_calls max_completion_tokens stream stream_options reasoning_effort temperature top_p n stop seed user metadata store"
	const openAIFailure = `{"error":{"message":%s,"type":"invalid_request_error","param":%s,"code":null}}`
	return map[string]vendor{
		"anthropic": {
			name: "Anthropic", page: "https://docs.anthropic.com/en/api/messages", protocol: config.ProviderAnthropic, path: "/v1/messages", key: "X-Api-Key",
			members: "model messages max_tokens stream system tools tool_choice thinking output_config temperature top_p top_k stop_sequences metadata", limit: "max_tokens",
			unknown: "%s: Extra inputs are not permitted", status: 400, failure: `{"type":"error","error":{"type":"invalid_request_error","message":%s}}`,
			parts: "text image document tool_result", badPart: "messages: Input tag '%s' found using 'type' does not match any of the expected tags",
			ids: `^[a-zA-Z0-9_-]+$`, reasons: "thinking", needs: "Expected `thinking` or `redacted_thinking`, but found `tool_use`",
			overload: `529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
		},
		"openai": {
			name: "OpenAI", page: "https://platform.openai.com/docs/api-reference/chat/create", path: "/v1/chat/completions", key: "Authorization",
			members: openAIs, limit: "max_completion_tokens", unknown: "Unsupported parameter: '%s' is not supported with this model.", status: 400, failure: openAIFailure,
			parts: "text image_url file", badPart: "Invalid value: '%s'.", ids: `^.{1,40}$`,
			overload: `429 {"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}`,
		},
		"azure": {
			name: "Azure OpenAI", page: "https://learn.microsoft.com/azure/ai-foundry/openai/reference", path: "/openai/deployments/m/chat/completions", query: "api-version=2024-10-21", key: "Api-Key",
			members: openAIs, limit: "max_completion_tokens", unknown: "Unsupported parameter: '%s' is not supported with this model.", status: 400, failure: openAIFailure,
			parts: "text image_url", badPart: "Invalid Value: '%s'. This model does not support file content types.", ids: `^.{1,40}$`,
			first:    `{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}`,
			overload: `429 {"error":{"code":"429","message":"Requests have exceeded the call rate limit"}}`,
		},
		"gemini": {
			name: "Gemini", page: "https://ai.google.dev/gemini-api/docs/openai", path: "/v1beta/openai/chat/completions", key: "Authorization",
			members: "model messages tools tool_choice max_tokens stream stream_options reasoning_effort temperature top_p n stop extra_body", limit: "max_tokens",
			unknown: "Invalid JSON payload received. Unknown name \"%s\": Cannot find field.", status: 400,
			failure: `[{"error":{"code":400,"message":%s,"status":"INVALID_ARGUMENT"}}]`,
			parts:   "text image_url", badPart: "Invalid content part type: %s", ids: `.`, whole: true,
			reasons: "extra_content", needs: "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly.",
			foreign:  `{"google":{"thought_signature":"skip_thought_signature_validator"}}`,
			overload: `503 [{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}]`,
		},
		"deepseek": {
			name: "DeepSeek", page: "https://api-docs.deepseek.com/guides/thinking_mode", path: "/chat/completions", key: "Authorization",
			limit: "max_tokens", status: 400, failure: `{"error":{"message":%s,"type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`,
			parts: "text", badPart: "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `%s`, expected `text` at line 1 column 1", ids: `.`,
			reasons: "reasoning_content", needs: "The `reasoning_content` in the thinking mode must be passed back to the API.", foreign: `""`, comment: ": keep-alive",
			overload: `503 {"error":{"message":"Service is too busy","type":"service_unavailable_error"}}`,
		},
		"mistral": {
			name: "Mistral", page: "https://docs.mistral.ai/api", path: "/v1/chat/completions", key: "Authorization",
			members: "model messages tools tool_choice parallel_tool_calls max_tokens stream reasoning_effort temperature top_p n stop random_seed metadata response_format", limit: "max_tokens",
			unknown: "Extra inputs are not permitted: %s", status: 422,
			failure: `{"object":"error","message":{"detail":[{"type":"extra_forbidden","msg":%s,"loc":["body",%s],"input":1}]},"type":"invalid_request_error","param":null,"code":null}`,
			parts:   "text image_url document_url", badPart: "Input tag '%s' found using 'type' does not match any of the expected tags", inTools: true, ids: `^[a-zA-Z0-9]{9}$`,
			reasons: "content", needs: "Assistant message must have the thinking chunks that it was sent with",
			overload: `429 {"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded","param":null,"code":"3505"}`,
		},
		"qwen": {
			name: "Qwen", page: "https://help.aliyun.com/zh/model-studio/qwen-api-reference", path: "/compatible-mode/v1/chat/completions", key: "Authorization",
			limit: "max_tokens", status: 400, failure: `{"error":{"code":"invalid_parameter_error","param":null,"message":%s,"type":"invalid_request_error"},"request_id":"r"}`,
			parts: "text image_url", badPart: "<400> InternalError.Algo.InvalidParameter: Invalid value: %s. Supported values are: 'text','image_url','video_url' and 'video'.", ids: `.`,
			reasons:  "reasoning_content",
			overload: `429 {"error":{"message":"Requests rate limit exceeded","type":"limit_requests","param":null,"code":"limit_requests"},"request_id":"r"}`,
		},
		"openrouter": {
			name: "OpenRouter", page: "https://openrouter.ai/docs/guides/best-practices/reasoning-tokens", path: "/api/v1/chat/completions", key: "Authorization",
			limit: "max_tokens", status: 400, failure: `{"error":{"message":%s,"code":400,"metadata":{"provider_name":null}},"user_id":"u"}`,
			parts: "text image_url file", badPart: "Invalid input: %s", ids: `.`, reasons: "reasoning_details",
			needs: "reasoning_details must be passed back unmodified", comment: ": OPENROUTER PROCESSING",
			overload: `503 {"error":{"message":"No instances available","code":503}}`,
		},
		"vllm": {
			name: "vLLM", page: "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html", path: "/v1/chat/completions", key: "Authorization",
			limit: "max_tokens", status: 400, failure: `{"error":{"message":%s,"type":"BadRequestError","param":null,"code":400}}`,
			parts: "text image_url", badPart: "Unknown part type: %s", ids: `.`, reasons: "reasoning",
			overload: `503 {"error":{"message":"The server is busy","type":"ServiceUnavailable","param":null,"code":503}}`,
		},
		"llamacpp": {
			name: "llama.cpp", page: "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md", path: "/v1/chat/completions", key: "Authorization",
			limit: "max_tokens", status: 400, failure: `{"error":{"code":400,"message":%s,"type":"invalid_request_error"}}`,
			parts: "text", badPart: "%s input is not supported - hint: if this is unexpected, you may need to provide the mmproj", badParts: 500, ids: `.`, reasons: "reasoning_content",
			overload: `503 {"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`,
		},
		"ollama": {
			name: "Ollama", page: "https://docs.ollama.com/api/openai-compatibility", path: "/v1/chat/completions", key: "Authorization",
			limit: "max_tokens", status: 400, failure: `{"error":{"message":%s,"type":"invalid_request_error","param":null,"code":null}}`,
			parts: "text image_url", badPart: "invalid message format", ids: `.`, whole: true, reasons: "reasoning",
			overload: `503 {"error":{"message":"server busy, please try again. maximum pending requests exceeded","type":"api_error","param":null,"code":null}}`,
		},
	}
}

// base returns the vendor's address at a server, as an operator configures it.
func (v vendor) base(server, id string) string {
	base := server + "/" + id + strings.TrimSuffix(strings.TrimSuffix(v.path, "/v1/messages"), "/chat/completions")
	if v.query != "" {
		base += "?" + v.query
	}
	return base
}

// strict is a server that is as strict as a vendor's own.
type strict struct {
	vendor
	id string

	mu      *sync.Mutex // shared by all vendors
	asked   int
	issued  map[string]string // what must come back with a tool call, by the call's id
	marks   []string          // what must never reach another vendor
	saw     map[string]bool   // what arrived
	refused map[string]bool   // the messages with which it refused requests
	tools   func(name string) string
}

// serveVendors starts a server that plays every vendor.
func serveVendors(t *testing.T) (url string, all map[string]*strict) {
	t.Helper()
	all = map[string]*strict{}
	mu := &sync.Mutex{}
	mux := http.NewServeMux()
	for id, v := range vendors() {
		s := &strict{vendor: v, id: id, mu: mu, issued: map[string]string{}, saw: map[string]bool{}, refused: map[string]bool{}}
		all[id] = s
		mux.HandleFunc("POST /"+id+v.path, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, all) })
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL, all
}
