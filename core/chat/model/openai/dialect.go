package openai

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// dialect describes how a model deviates from what most servers accept. It is learned from rejected requests and
// remembered for the model. Each deviation is learned only once, so a request is repeated only a few times.
type dialect struct {
	completionTokens bool // the limit is max_completion_tokens: https://platform.openai.com/docs/api-reference/chat/create
	otherLimit       bool // the other name of the limit has been tried
	maxTokens        int  // the highest answer limit that it accepts; 0 until it has rejected a higher one
	noStreamOptions  bool
	noEffort         bool
	efforts          model.EffortSubstitutes
	noSystem         bool // instructions are a part of the first user message: Gemma's chat template
	noImages         bool // the model cannot see: https://api-docs.deepseek.com/api/create-chat-completion
	noImageURLs      bool // images must be sent as data: https://docs.ollama.com/api/openai-compatibility
	noFiles          bool
	filesInTools     bool // images are a part of the tool message: https://docs.mistral.ai/capabilities/vision
	bridged          bool // a user message may not follow a tool message: https://docs.mistral.ai/capabilities/function_calling
	namedResults     bool // a tool message contains the tool's name: https://ai.google.dev/gemini-api/docs/openai
	noReasoning      bool // the reasoning that it sent must not be sent back: https://api-docs.deepseek.com/guides/reasoning_model
	shortIDs         bool // tool call ids must have nine letters and digits: https://docs.mistral.ai/capabilities/function_calling
	wantsSignature   bool // tool calls without a signature are rejected: https://ai.google.dev/gemini-api/docs/thought-signatures
	noEmptySchemas   bool // a tool without parameters has no schema: https://ai.google.dev/api/caching#Schema
	wantsTools       bool // tool calls without definitions of tools are rejected: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
	noNull           bool // an assistant message with calls alone has "" for its content: https://help.aliyun.com/zh/model-studio/qwen-api-reference
	temporary        bool // what was learned may be true only of this conversation
	// reasoning is the reasoning_content, in JSON, for tool calls without any, because the server rejects them:
	// https://api-docs.deepseek.com/guides/thinking_mode. Kimi may reject an empty one.
	reasoning string
	// keywords are what model.SafeSchema removes, separated by spaces: https://ai.google.dev/api/caching#Schema
	keywords string
}

var (
	fileWord    = regexp.MustCompile(`\b(file|pdf)\b`)
	unknownName = regexp.MustCompile(`Unknown name \\?"([$A-Za-z]+)\\?" at '[^']*(?:parameters|function_declarations)(?:[^']*': Proto field is not (repeating))?`)
	badEnum     = regexp.MustCompile(`function_declarations[^']*\.enum(?:\[|: only allowed)`)

	// oneFile matches complaints about one file or its address, not about files in general.
	oneFile = regexp.MustCompile(`download|fetch|timeout|timed out|retriev|status code|unsupported image|following formats|process (?:input )?image|decod|cannot identify|` +
		`failed to (?:load|open|parse|process)|corrupt|invalid base64|exceed|dimension|pixel|password|encrypted|is empty|invalid (?:image|file|pdf) data|not a valid|mime type|pages|at most [1-9]|too many`)
)

// complaint is the error for a rejected request, in lower case.
type complaint string

func (c complaint) about(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(string(c), w) })
}

// isUnknown reports whether the server complains about something that it does not recognize.
func (c complaint) isUnknown() bool {
	return c.about("unsupported", "not supported", "unrecognized", "unknown", "extra", "unexpected", "not permitted", "not allowed", "instead", "remove")
}

// learn updates the dialect from the error for a rejected request. It returns false if there is nothing to learn.
func (d *dialect) learn(e *model.Error, r request) bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusInternalServerError, http.StatusNotImplemented:
	default:
		return false
	}
	if e.Failure == model.Filtered {
		return false
	}
	before, reason := *d, complaint(strings.ToLower(e.Param+" "+e.Message))
	if !d.learnSchemas(e, reason) && !d.learnMessages(reason, r) && !d.learnMembers(e, reason, r) {
		d.learnParts(reason, r)
	}
	return *d != before
}

// learnSchemas learns what the server rejects in the definitions of tools.
func (d *dialect) learnSchemas(e *model.Error, reason complaint) bool {
	found := unknownName.FindAllStringSubmatch(e.Message, -1)
	for _, match := range found {
		if match[1] == "type" && match[2] != "" {
			match[1] = model.TypeLists
		}
		d.without(match[1])
	}
	if badEnum.MatchString(e.Message) {
		d.without(model.OtherEnums)
		return true
	}
	if reason.about("should be non-empty for object") {
		d.noEmptySchemas = true
		return true
	}
	return len(found) > 0
}

func (d *dialect) without(keyword string) {
	if !slices.Contains(strings.Fields(d.keywords), keyword) {
		d.keywords = strings.TrimSpace(d.keywords + " " + keyword)
	}
}

// learnMessages learns what the server rejects in the order and the members of messages.
func (d *dialect) learnMessages(reason complaint, r request) bool {
	switch {
	case reason.about("thought_signature", "thought signature"):
		d.wantsSignature = true
	case r.returns(reason):
		d.noReasoning = true
	case reason.about("reasoning_content") && reason.about("passed back", "missing", "required", "must"):
		if d.reasoning != "" {
			d.reasoning = `" "`
		} else {
			d.reasoning = `""`
		}
	case reason.about("toolconfig field must be defined", "must define tools", "`tools=` param"):
		d.wantsTools = true
	case reason.about("tool call id", "tool_call_id") && reason.about("length of 9", "a-z"):
		d.shortIDs = true
	case reason.about("'user' after role 'tool'", "role user after role tool", "user after tool", "role 'user' after"):
		d.bridged, d.filesInTools = true, true
	case reason.about("function_response.name"):
		d.namedResults = true
	case reason.about("system role", "'system'", "system message", "system instruction", "developer instruction") && reason.about("not support", "unsupported", "not enabled", "not allowed"):
		d.noSystem = true
	default:
		return false
	}
	return true
}

// learnMembers learns which other members the server rejects.
func (d *dialect) learnMembers(e *model.Error, reason complaint, r request) bool {
	limit := max(r.MaxTokens, r.MaxCompletionTokens)
	lower := e.AnswerLimit(limit)
	switch {
	case reason.about("max_tokens", "max_completion_tokens") && reason.isUnknown() && !d.otherLimit:
		d.completionTokens, d.otherLimit = r.MaxTokens > 0, true
	case lower > 0:
		d.maxTokens = lower
	case reason.about("stream_options", "include_usage") && r.StreamOptions != nil:
		d.noStreamOptions = true
	case reason.about("effort", "reasoning", "think") && r.ReasoningEffort != "":
		d.noEffort = !d.efforts.Learn(e.Message, r.ReasoningEffort)
	default:
		return false
	}
	return true
}

// learnParts learns which parts of messages the server rejects.
func (d *dialect) learnParts(reason complaint, r request) {
	before := *d
	switch {
	case r.has("file") && fileWord.MatchString(string(reason)): // check this before images, because the message may list what is accepted
		d.noFiles = true
	case !d.noImageURLs && r.hasImageURL() && reason.about("image", "url", "base64", "download", "fetch"):
		d.noImageURLs = true
	case r.has("image_url") && reason.about("image", "vision", "multimodal", "mmproj", "content type", "content[].type", "unknown variant", "must be a string", "text-only", "string type"):
		d.noImages = true
	case r.has("file") && reason.about("content type", "content[].type", "unknown variant", "message format", "must be a string", "'type'"):
		d.noFiles = true
	case r.hasNull() && reason.about("content") && reason.about("null", "none", "string", "required"):
		d.noNull = true
	}
	if *d != before {
		d.temporary = d.temporary || oneFile.MatchString(string(reason))
	}
}

// returns reports whether the server complains about a member of an assistant message that it sent itself.
func (r request) returns(reason complaint) bool {
	for _, m := range r.Messages {
		for name := range m.extra {
			named := regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`)
			if rest := named.ReplaceAllString(string(reason), ""); rest != string(reason) && complaint(rest).isUnknown() {
				return true
			}
		}
	}
	return false
}

// hasImageURL reports whether a message contains the address of an image.
func (r request) hasImageURL() bool {
	for _, m := range r.Messages {
		parts, _ := m.Content.([]contentPart)
		if slices.ContainsFunc(parts, func(p contentPart) bool { return p.ImageURL != nil && strings.HasPrefix(p.ImageURL.URL, "http") }) {
			return true
		}
	}
	return false
}

// hasNull reports whether a message has no content.
func (r request) hasNull() bool {
	return slices.ContainsFunc(r.Messages, func(m message) bool {
		raw, isRaw := m.Content.(json.RawMessage)
		return isRaw && string(raw) == "null"
	})
}

// has reports whether a message of the request has a part of that type.
func (r request) has(kind string) bool {
	for _, m := range r.Messages {
		parts, _ := m.Content.([]contentPart)
		for _, p := range parts {
			if p.Type == kind {
				return true
			}
		}
	}
	return false
}
