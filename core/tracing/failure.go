package tracing

import (
	"context"
	"errors"
	"strconv"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// failure is an error that states its own kind, one of a small set.
type failure interface {
	error
	ErrorType() string
}

// kindOf returns the kind of an error (error.type): the code of a JSON-RPC error, or of a core.Error.
func kindOf(err error) string {
	if refused, ok := errors.AsType[*rpc.Error](err); ok {
		return strconv.Itoa(refused.Code)
	}
	if known, ok := errors.AsType[failure](err); ok {
		return known.ErrorType()
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	if known, ok := errors.AsType[*core.Error](err); ok {
		return string(known.Code)
	}
	return "_OTHER"
}
