package model

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// Failure is the kind of a provider failure.
type Failure int

// The kinds of failures. Unknown failures are Refused.
const (
	Refused     Failure = iota // the request was rejected; a retry will not help
	Auth                       // the key is invalid or may not use the model
	RateLimited                // there were too many requests
	Overloaded                 // the provider is temporarily overloaded
	ServerError                // the provider had an internal error
	TooLong                    // the conversation does not fit into the model's context
	Unreachable                // there was no response at all
	Broken                     // the connection broke in the middle of an answer
	Filtered                   // a content filter withheld the answer; Call returns EndFilter instead
)

// Error is a provider failure. Its text is for the log and does not contain the key.
type Error struct {
	Failure    Failure
	Status     int           // the HTTP status; 0 if there was none
	RetryAfter time.Duration // how long the provider asked to wait; 0 for none
	Host       string        // the provider's host, for Unreachable
	Message    string        // the provider's message, or why it is unreachable
	Param      string        // the member of the request that the provider complains about; "" for none
	Reported   bool          // the provider reported it in the middle of an answer
	cause      error
}

func (e *Error) Error() string {
	text := "the provider failed"
	if e.Host != "" {
		text = e.Host + " cannot be reached"
	}
	if e.Status != 0 {
		text += " with status " + strconv.Itoa(e.Status)
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// ErrorType returns a short name for the failure, for traces: the HTTP status if there is one.
func (e *Error) ErrorType() string {
	if e.Status != 0 {
		return strconv.Itoa(e.Status)
	}
	switch e.Failure {
	case Unreachable:
		return "unreachable"
	case Broken:
		return "connection_broken"
	default:
		return "provider_error"
	}
}

func (e *Error) Unwrap() error { return e.cause }

// isTransient reports whether a retry may succeed.
func (e *Error) isTransient() bool {
	switch e.Failure {
	case RateLimited, Overloaded, ServerError, Broken:
		return true
	case Unreachable:
		return !isPermanent(e.cause)
	default:
		return false
	}
}

// FromStatus returns the failure for an HTTP status. kind is the provider's own name for it.
func FromStatus(status int, header http.Header, kind, message string, cause error) *Error {
	return &Error{Failure: failureOf(status, kind, message), Status: status, Message: message, cause: cause, RetryAfter: retryAfter(header)}
}

// aboutTools matches llama.cpp's internal errors about the definition of a tool, which do not go away by themselves.
var aboutTools = regexp.MustCompile(`(?i)json schema|grammar|tools param`)

// filtered matches what providers return when a content filter withholds the answer: Azure, Qwen, OpenAI, LiteLLM, DeepSeek,
// OpenRouter.
var filtered = regexp.MustCompile(`(?i)^content_filter |^data_inspection_failed |content_?policy_?violation|^invalid_prompt |content management policy|` +
	`content exists risk|input was flagged`)

const statusOverloaded = 529 // Anthropic's

func failureOf(status int, kind, message string) Failure {
	switch {
	case isTooLong(status, kind, message):
		return TooLong
	case (status == 0 || status == http.StatusBadRequest || status == http.StatusForbidden) && filtered.MatchString(kind+" "+message):
		return Filtered
	case kind == "tool_use_failed": // the model wrote a call that the provider could not parse: https://console.groq.com/docs/tool-use
		return ServerError
	case kind == "overloaded_error":
		return Overloaded
	case kind == "rate_limit_error", status == http.StatusTooManyRequests && kind != "insufficient_quota":
		return RateLimited
	case status == http.StatusUnauthorized, status == http.StatusForbidden, kind == "authentication_error", kind == "permission_error":
		return Auth
	case status == http.StatusRequestTimeout:
		return Broken
	}
	switch status {
	case http.StatusServiceUnavailable, statusOverloaded, http.StatusBadGateway, http.StatusGatewayTimeout:
		return Overloaded
	}
	if status == http.StatusInternalServerError && aboutTools.MatchString(message) {
		return Refused
	}
	if status >= http.StatusInternalServerError || kind == "api_error" {
		return ServerError
	}
	return Refused
}

// FromBreak returns the failure for a broken connection: Unreachable if there was no response yet, Broken in the middle of one.
// If ctx has ended, it returns ctx.Err().
func FromBreak(ctx context.Context, cause error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if known, ok := errors.AsType[*Error](cause); ok {
		return known
	}
	if request, ok := errors.AsType[*url.Error](cause); ok {
		return &Error{Failure: Unreachable, Host: hostOf(request.URL), Message: reason(request.Err), cause: cause}
	}
	return &Error{Failure: Broken, Message: "the connection broke", cause: cause}
}

// tooLong matches what providers return for a conversation that is too long: Anthropic, Ollama, Bedrock, Mistral, OpenAI and
// most others, llama.cpp, LM Studio, SGLang, Gemini, xAI, Groq, Kimi, Together and TGI, Cohere, Z.ai, Qwen, GitHub.
var tooLong = regexp.MustCompile(`(?i)prompt is too long|prompt too long|input is too long|maximum context length|context ?window|` +
	`exceeds? the (?:available )?context|exceed[ _]context|greater than the context length|context length of only|longer than the (?:model's )?context length|` +
	`input token count.*exceeds the maximum|maximum prompt length|reduce the length of the (?:messages|prompt)|exceeded model token limit|` +
	"inputs` (?:tokens \\+ `max_new_tokens` must be <=|must have less than)|too many tokens|prompt exceeds max|range of input length|token count of \\d+ exceeds the limit")

// isTooLong recognizes the errors that providers return for a conversation that is too long.
func isTooLong(status int, kind, message string) bool {
	return kind == "context_length_exceeded" || kind == "request_too_large" || kind == "exceed_context_size_error" ||
		status == http.StatusRequestEntityTooLarge || status != http.StatusTooManyRequests && tooLong.MatchString(message)
}

// retryAfter reads the Retry-After header (RFC 9110, 10.2.3) and OpenAI's additional Retry-After-Ms.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
