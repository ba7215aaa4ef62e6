package core

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Code is one of a closed list of error codes of the HTTP API. Only the HTTP packages map a Code to
// an HTTP status.
type Code string

// The codes. An error without a code is treated as CodeInternal.
const (
	CodeBadRequest          Code = "bad_request"
	CodeInvalidInput        Code = "invalid_input"
	CodeCredentialsRequired Code = "credentials_required"
	CodePermissionsRequired Code = "permissions_required"
	CodeWorkspaceRequired   Code = "workspace_required"
	CodeNotConfigured       Code = "not_configured"
	CodeUnauthenticated     Code = "unauthenticated"
	CodeForbidden           Code = "forbidden"
	CodeProtected           Code = "protected"
	CodeToolHeld            Code = "tool_held"
	CodeApprovalPending     Code = "approval_pending"
	CodeApprovalRefused     Code = "approval_refused"
	CodeLoginNeeded         Code = "login_needed"
	CodeFeatureDisabled     Code = "feature_disabled"
	CodeWorkspaceDenied     Code = "workspace_access_denied"
	CodeNotFound            Code = "not_found"
	CodeToolNotFound        Code = "tool_not_found"
	CodeResourceNotFound    Code = "resource_not_found"
	CodeMethodNotAllowed    Code = "method_not_allowed"
	CodeAlreadyInstalled    Code = "already_installed"
	CodeRunInProgress       Code = "run_in_progress"
	CodeConflict            Code = "conflict"
	CodeAlreadyAnswered     Code = "already_answered"
	CodePayloadTooLarge     Code = "payload_too_large"
	CodeLimitReached        Code = "limit_reached"
	CodeNotAcceptable       Code = "not_acceptable"
	CodeHeadersTooLarge     Code = "headers_too_large"
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

// Error is the error type that packages return to each other. Message is for the caller: which field
// or setting is wrong, why, and what to do. It never contains a secret. The wrapped cause is for the log.
type Error struct {
	Code       Code
	Message    string
	Details    any           // encoded as the "details" of the response; nil if there are none
	RetryAfter time.Duration // when to retry; 0 if unknown
	cause      error
}

// Errorf returns an Error with a formatted message. The operand of a %w verb becomes its cause, for errors.Is,
// errors.As and the log.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), cause: errors.Unwrap(err)}
}

// Wrap returns an Error with a message that is safe to show and a cause for the log.
func Wrap(code Code, cause error, message string) *Error {
	return &Error{Code: code, Message: message, cause: cause}
}

// WithDetails sets the details of e and returns e.
func (e *Error) WithDetails(details any) *Error {
	e.Details = details
	return e
}

// WithRetryAfter sets the retry delay of e and returns e.
func (e *Error) WithRetryAfter(d time.Duration) *Error {
	e.RetryAfter = d
	return e
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Unwrap returns the cause, or nil if there is none.
func (e *Error) Unwrap() error { return e.cause }

// CodeOf returns the code of the first Error in err's chain, or CodeInternal if there is none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// TextOf returns the text of an error without the code that Error.Error prepends.
func TextOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Message
	}
	return strings.TrimSpace(err.Error())
}
