package plugins

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type meaning struct {
	err  error
	code codes.Code
	also error
}

// table is the whole agreement between errors and gRPC codes, read in both directions: the first
// row that fits counts. A deadline that passed is also an ErrUnavailable on the other side: the
// backend could not be asked in time.
func table() []meaning {
	return []meaning{
		{err: ErrNotFound, code: codes.NotFound},
		{err: ErrInvalid, code: codes.InvalidArgument},
		{err: ErrUnauthenticated, code: codes.Unauthenticated},
		{err: context.Canceled, code: codes.Canceled},
		{err: context.DeadlineExceeded, code: codes.DeadlineExceeded, also: ErrUnavailable},
		{err: ErrUnavailable, code: codes.Unavailable},
		{err: ErrUnimplemented, code: codes.Unimplemented},
	}
}

// ToStatus turns what an implementation returned into what crosses the wire. The message is kept;
// an error that the table does not know becomes codes.Internal.
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

// FromStatus turns what crossed the wire into an error that errors.Is finds to be the one it was
// on the other side. What the table does not know is none of the errors of this package.
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
			return &wireError{message: s.Message(), is: row.err, also: row.also}
		}
	}
	return &wireError{message: s.Message()}
}

// wireError has the message of the other side and the identity of this side's error.
type wireError struct {
	message  string
	is, also error
}

func (e *wireError) Error() string { return e.message }

func (e *wireError) Is(target error) bool {
	return target != nil && (target == e.is || target == e.also)
}
