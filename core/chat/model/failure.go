package model

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Failure is the kind of a provider's failure.
type Failure int

// The failures. An unknown one is Refused.
const (
	Refused     Failure = iota // the request was not accepted: repeating it will not help
	Auth                       // the key is wrong, or may not use the model
	RateLimited                // there were too many requests
	Overloaded                 // the provider cannot answer at the moment
	ServerError                // the provider failed
	TooLong                    // the conversation does not fit into the model's context
	Unreachable                // there was no answer at all
	Broken                     // the connection broke in the middle of an answer
)

// Error is a provider's failure. Its text is for the log; it has no key in it.
type Error struct {
	Failure    Failure
	Status     int           // the HTTP status; 0 when there was none
	RetryAfter time.Duration // what the provider asked for; 0 when nothing
	Host       string        // of the provider, when it is Unreachable
	Message    string        // what the provider said, or why it is unreachable
	Param      string        // the member of the request that the provider names; "" when none
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

// ErrorType is the kind of the failure in few words, for traces: the HTTP status where there is one.
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

// isTransient reports whether the same call may succeed a little later.
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

// FromStatus is the failure that an HTTP status reports. kind is the provider's own name of it.
func FromStatus(status int, header http.Header, kind, message string, cause error) *Error {
	return &Error{Failure: failureOf(status, kind, message), Status: status, Message: message, cause: cause, RetryAfter: retryAfter(header)}
}

const statusOverloaded = 529 // Anthropic's

func failureOf(status int, kind, message string) Failure {
	switch {
	case isTooLong(kind, message) || status == http.StatusRequestEntityTooLarge:
		return TooLong
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
	if status >= http.StatusInternalServerError || kind == "api_error" {
		return ServerError
	}
	return Refused
}

// FromBreak is the failure of a connection: Unreachable before there was an answer, Broken in the middle
// of one. When ctx ended, it is the error of ctx.
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

// isTooLong knows how the providers say that a conversation does not fit.
func isTooLong(kind, message string) bool {
	m := strings.ToLower(message)
	return kind == "context_length_exceeded" || kind == "request_too_large" || strings.Contains(m, "prompt is too long") ||
		strings.Contains(m, "maximum context length") || strings.Contains(m, "context window") || strings.Contains(m, "exceeds the context") || strings.Contains(m, "exceed context") || strings.Contains(m, "exceed_context") || kind == "exceed_context_size_error"
}

// retryAfter reads the header of RFC 9110, 10.2.3, and the milliseconds that OpenAI sends in addition.
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
