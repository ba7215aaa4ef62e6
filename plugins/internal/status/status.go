package status

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ropewalk/ropewalk/plugins"
)

type meaning struct {
	err  error
	code codes.Code
	also error
}

// table maps errors to gRPC codes and back; the first matching row applies. A deadline that
// passed is also plugins.ErrUnavailable on the host's side: the backend was not reached in time.
func table() []meaning {
	return []meaning{
		{err: plugins.ErrNotFound, code: codes.NotFound},
		{err: plugins.ErrInvalid, code: codes.InvalidArgument},
		{err: plugins.ErrUnauthenticated, code: codes.Unauthenticated},
		{err: context.Canceled, code: codes.Canceled},
		{err: context.DeadlineExceeded, code: codes.DeadlineExceeded, also: plugins.ErrUnavailable},
		{err: plugins.ErrUnavailable, code: codes.Unavailable},
		{err: plugins.ErrUnimplemented, code: codes.Unimplemented},
	}
}

// ToStatus turns the error of an implementation into a gRPC status. The message is kept; an error
// that is not in the table becomes codes.Internal.
func ToStatus(err error) error {
	if err == nil {
		return nil
	}
	for _, row := range table() {
		if errors.Is(err, row.err) {
			return status.Error(row.code, err.Error())
		}
	}
	if s, ok := status.FromError(err); ok {
		for _, row := range table() {
			if s.Code() == row.code {
				return status.Error(row.code, s.Message())
			}
		}
		return status.Error(codes.Internal, s.Message())
	}
	return status.Error(codes.Internal, err.Error())
}

// FromStatus turns a gRPC status into an error for which errors.Is gives the same answers as for the
// error of the implementation. A code that is not in the table does not become an error of package plugins.
func FromStatus(err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, row := range table() {
		if s.Code() == row.code {
			return &remoteError{message: s.Message(), code: s.Code(), is: row.err, also: row.also}
		}
	}
	return &remoteError{message: s.Message(), code: s.Code()}
}

var words = regexp.MustCompile("[a-z][A-Z]")

// Text returns an error as its code and message: INTERNAL "the database failed". An error that did not arrive as a status
// and is not in the table has no code, only a message. It returns OK for nil.
func Text(err error) string {
	if err == nil {
		return codes.OK.String()
	}
	code, message := codes.Unknown, err.Error()
	if remote, ok := errors.AsType[*remoteError](err); ok {
		code = remote.code
	} else if s, ok := status.FromError(err); ok {
		code, message = s.Code(), s.Message()
	} else if code = status.Code(ToStatus(err)); code == codes.Internal {
		return message
	}
	name := strings.ToUpper(words.ReplaceAllStringFunc(code.String(), func(pair string) string { return pair[:1] + "_" + pair[1:] }))
	return fmt.Sprintf("%s %q", strings.Replace(name, "CANCELED", "CANCELLED", 1), message)
}

// NewError returns an error with the given message that errors.Is reports to be is.
func NewError(message string, is error) error {
	return &remoteError{message: message, code: status.Code(ToStatus(is)), is: is}
}

// remoteError has the message of the plugin and the identity of the host's error.
type remoteError struct {
	message  string
	code     codes.Code
	is, also error
}

func (e *remoteError) Error() string { return e.message }

func (e *remoteError) Is(target error) bool {
	return target != nil && (target == e.is || target == e.also)
}
