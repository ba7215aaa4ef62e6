package respond

import (
	"errors"
	"strings"

	"github.com/ropewalk/ropewalk/core"
)

// WithCode gives an error without a code that of the operation that failed.
func WithCode(code core.Code, message string, err error) error {
	if _, ok := errors.AsType[*core.Error](err); ok {
		return err
	}
	return core.Wrap(code, err, message+"; the server log has the reason under the X-Request-Id of this response")
}

// Cause is the text of an error for the log: the message of the response and the cause it hides.
func Cause(err error, e *core.Error) string {
	hidden := errors.Unwrap(e)
	if hidden == nil || strings.Contains(err.Error(), hidden.Error()) {
		return err.Error()
	}
	return err.Error() + ": " + hidden.Error()
}
