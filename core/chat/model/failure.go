package model

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Failure is what kind of failure a provider's is.
type Failure int

// The failures. What is not known is Refused.
const (
	Refused     Failure = iota // the request was not taken: asking again will not help
	Auth                       // the key is wrong, or may not use the model
	RateLimited                // too much was asked
	Overloaded                 // the provider cannot at the moment
	TooLong                    // the conversation does not fit into the model's context
	Broken                     // the connection or the stream broke
)

// Error is a provider's failure. Its text is for the log.
type Error struct {
	Failure    Failure
	Status     int           // the HTTP status; 0 when there was none
	RetryAfter time.Duration // what the provider asked for; 0 when nothing
	Message    string        // what the provider said
	cause      error
}

func (e *Error) Error() string {
	text := "the provider failed"
	if e.Status != 0 {
		text += " with status " + strconv.Itoa(e.Status)
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

func (e *Error) Unwrap() error { return e.cause }

// passing reports whether the same call may succeed a little later.
func (e *Error) passing() bool {
	return e.Failure == RateLimited || e.Failure == Overloaded || e.Failure == Broken
}

// FromStatus is the failure of an answer that is none. kind is the provider's own name of it.
func FromStatus(status int, header http.Header, kind, message string, cause error) *Error {
	e := &Error{Status: status, Message: message, cause: cause, RetryAfter: retryAfter(header)}
	switch {
	case tooLong(kind, message) || status == http.StatusRequestEntityTooLarge:
		e.Failure = TooLong
	case kind == "overloaded_error", kind == "api_error", status >= http.StatusInternalServerError:
		e.Failure = Overloaded
	case kind == "rate_limit_error", status == http.StatusTooManyRequests && kind != "insufficient_quota":
		e.Failure = RateLimited
	case status == http.StatusUnauthorized, status == http.StatusForbidden, kind == "authentication_error", kind == "permission_error":
		e.Failure = Auth
	case status == http.StatusRequestTimeout:
		e.Failure = Broken
	default:
		e.Failure = Refused
	}
	return e
}

// FromBreak is the failure of a connection or a stream. The end of ctx is not the provider's.
func FromBreak(ctx context.Context, cause error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if known, ok := errors.AsType[*Error](cause); ok {
		return known
	}
	return &Error{Failure: Broken, Message: "the connection broke", cause: cause}
}

// tooLong knows the ways in which the providers say that a conversation does not fit.
func tooLong(kind, message string) bool {
	m := strings.ToLower(message)
	return kind == "context_length_exceeded" || kind == "request_too_large" || strings.Contains(m, "prompt is too long") ||
		strings.Contains(m, "maximum context length") || strings.Contains(m, "context window") || strings.Contains(m, "exceeds the context")
}

// retryAfter reads the header of RFC 9110, 10.2.3, and the milliseconds that OpenAI sends beside it.
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
