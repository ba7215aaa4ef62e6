package core

import (
	"errors"
	"fmt"
	"time"
)

// Code is one of the closed list of error codes that the HTTP API promises (spec part 7,
// contract part 1). A door maps a Code to its status; no other room knows about statuses.
type Code string

// The codes. Their meaning is the spec's; what is not in this list is CodeInternal.
const (
	CodeBadRequest          Code = "bad_request"
	CodeInvalidInput        Code = "invalid_input"
	CodeCredentialsRequired Code = "credentials_required"
	CodeWorkspaceRequired   Code = "workspace_required"
	CodeNotConfigured       Code = "not_configured"
	CodeUnauthenticated     Code = "unauthenticated"
	CodeForbidden           Code = "forbidden"
	CodeProtected           Code = "protected"
	CodeFeatureDisabled     Code = "feature_disabled"
	CodeWorkspaceDenied     Code = "workspace_access_denied"
	CodeNotFound            Code = "not_found"
	CodeToolNotFound        Code = "tool_not_found"
	CodeResourceNotFound    Code = "resource_not_found"
	CodeMethodNotAllowed    Code = "method_not_allowed"
	CodeAlreadyInstalled    Code = "already_installed"
	CodeRunInProgress       Code = "run_in_progress"
	CodeAlreadyAnswered     Code = "already_answered"
	CodePayloadTooLarge     Code = "payload_too_large"
	CodeUnsupportedMedia    Code = "unsupported_media_type"
	CodeRateLimited         Code = "rate_limited"
	CodeInstallFailed       Code = "install_failed"
	CodeUninstallFailed     Code = "uninstall_failed"
	CodeStartFailed         Code = "start_failed"
	CodeStopFailed          Code = "stop_failed"
	CodeUnavailable         Code = "unavailable"
	CodeModelNotConfigured  Code = "model_not_configured"
	CodeProviderAuth        Code = "provider_auth_error"
	CodeProviderOverloaded  Code = "provider_overloaded"
	CodeProviderError       Code = "provider_error"
	CodeEngineError         Code = "engine_error"
	CodeInternal            Code = "internal_error"
)

// Error is the one error type that crosses rooms. Message is for the caller: which field or
// setting, what was wrong, what to do; it never holds a secret. What it wraps is for the log.
type Error struct {
	Code       Code
	Message    string
	Details    any           // JSON-marshalled into the answer's details; nil when there are none
	RetryAfter time.Duration // when to come back; 0 when unknown
	cause      error
}

// Errorf builds an Error. A %w verb keeps its cause for errors.Is, errors.As and the log.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), cause: errors.Unwrap(err)}
}

// Wrap hides cause behind a message that is safe to show.
func Wrap(code Code, cause error, message string) *Error {
	return &Error{Code: code, Message: message, cause: cause}
}

// WithDetails returns e with the given details.
func (e *Error) WithDetails(details any) *Error {
	e.Details = details
	return e
}

// WithRetryAfter returns e with the given delay.
func (e *Error) WithRetryAfter(d time.Duration) *Error {
	e.RetryAfter = d
	return e
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Unwrap returns the cause, nil when there is none.
func (e *Error) Unwrap() error { return e.cause }

// CodeOf is the code of the first Error in err's chain, CodeInternal when there is none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}
