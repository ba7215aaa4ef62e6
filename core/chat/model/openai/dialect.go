package openai

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// dialect describes how a model deviates from what most servers accept. It is learned from rejected requests and
// remembered for the model. Each deviation is learned only once, so a request is repeated only a few times.
type dialect struct {
	completionTokens bool // the limit is max_completion_tokens: https://platform.openai.com/docs/api-reference/chat/create
	otherLimit       bool // the other name of the limit has been tried
	noStreamOptions  bool
	noEffort         bool
	noImages         bool // the model cannot see: https://api-docs.deepseek.com/api/create-chat-completion
	noFiles          bool
	filesInTools     bool // images are a part of the tool message: https://docs.mistral.ai/capabilities/vision
	bridged          bool // a user message may not follow a tool message: https://docs.mistral.ai/capabilities/function_calling
	wantsReasoning   bool // tool calls without reasoning_content are rejected: https://api-docs.deepseek.com/guides/thinking_mode
	shortIDs         bool // tool call ids must have nine letters and digits: https://docs.mistral.ai/capabilities/function_calling
	wantsSignature   bool // tool calls without a signature are rejected: https://ai.google.dev/gemini-api/docs/thought-signatures
}

var fileWord = regexp.MustCompile(`\b(file|pdf)\b`)

// learn updates the dialect from the error for a rejected request. It returns false if there is nothing to learn.
func (d *dialect) learn(e *model.Error, r request) bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusInternalServerError, http.StatusNotImplemented:
	default:
		return false
	}
	said := strings.ToLower(e.Param + " " + e.Message)
	about := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(said, w) {
				return true
			}
		}
		return false
	}
	before := *d
	switch {
	case about("thought_signature", "thought signature"):
		d.wantsSignature = true
	case about("reasoning_content") && about("passed back", "missing", "required", "must"):
		d.wantsReasoning = true
	case about("tool call id", "tool_call_id") && about("length of 9", "a-z"):
		d.shortIDs = true
	case about("'user' after role 'tool'", "role user after role tool", "user after tool", "role 'user' after"):
		d.bridged, d.filesInTools = true, true
	case about("max_tokens", "max_completion_tokens") && about("unsupported", "not supported", "unrecognized", "unknown", "extra", "unexpected", "not permitted", "instead") && !d.otherLimit:
		d.completionTokens, d.otherLimit = r.MaxTokens > 0, true
	case about("stream_options", "include_usage") && r.StreamOptions != nil:
		d.noStreamOptions = true
	case about("effort", "reasoning", "thinking") && r.ReasoningEffort != "":
		d.noEffort = true
	case r.has("file") && fileWord.MatchString(said): // before images: the words may list what is accepted
		d.noFiles = true
	case r.has("image_url") && about("image", "vision", "multimodal", "mmproj", "content type", "content[].type", "unknown variant", "must be a string", "text-only", "string type"):
		d.noImages = true
	case r.has("file") && about("content type", "content[].type", "unknown variant", "message format", "must be a string", "'type'"):
		d.noFiles = true
	}
	return *d != before
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
