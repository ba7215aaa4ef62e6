package status_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ropewalk/ropewalk/plugins"
	rpcstatus "github.com/ropewalk/ropewalk/plugins/internal/status"
)

// meanings are the errors that errors.Is can be asked for on the server's side.
var meanings = map[string]error{
	"not found": plugins.ErrNotFound, "invalid": plugins.ErrInvalid, "unauthenticated": plugins.ErrUnauthenticated,
	"unavailable": plugins.ErrUnavailable, "unimplemented": plugins.ErrUnimplemented,
	"canceled": context.Canceled, "deadline": context.DeadlineExceeded,
}

func TestAnErrorIsTheSameOnBothSides(t *testing.T) {
	cases := []struct {
		name  string
		err   error
		code  codes.Code
		means []string
	}{
		{"not found", plugins.ErrNotFound, codes.NotFound, []string{"not found"}},
		{"not found, wrapped", fmt.Errorf("session x: %w", plugins.ErrNotFound), codes.NotFound, []string{"not found"}},
		{"invalid", fmt.Errorf("ttl: %w", plugins.ErrInvalid), codes.InvalidArgument, []string{"invalid"}},
		{"unauthenticated", plugins.ErrUnauthenticated, codes.Unauthenticated, []string{"unauthenticated"}},
		{"unavailable", fmt.Errorf("redis: %w: %w", plugins.ErrUnavailable, errors.New("refused")), codes.Unavailable, []string{"unavailable"}},
		{"unimplemented", plugins.ErrUnimplemented, codes.Unimplemented, []string{"unimplemented"}},
		{"canceled", context.Canceled, codes.Canceled, []string{"canceled"}},
		{"a deadline is unavailable too", context.DeadlineExceeded, codes.DeadlineExceeded, []string{"deadline", "unavailable"}},
		{"unavailable because of a deadline", fmt.Errorf("redis: %w: %w", plugins.ErrUnavailable, context.DeadlineExceeded), codes.DeadlineExceeded, []string{"deadline", "unavailable"}},
		{"settings", &plugins.ConfigError{Problems: []plugins.Problem{{Message: "x"}}}, codes.InvalidArgument, []string{"invalid"}},
		{"a status of the author's own", status.Error(codes.NotFound, "gone"), codes.NotFound, []string{"not found"}},
		{"a status that means nothing here", status.Error(codes.DataLoss, "lost"), codes.Internal, nil},
		{"anything else", errors.New("disk on fire"), codes.Internal, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			wire := rpcstatus.ToStatus(c.err)
			if code := status.Code(wire); code != c.code {
				t.Errorf("the code is %s, want %s", code, c.code)
			}
			arrived := rpcstatus.FromStatus(wire)
			for name, meaning := range meanings {
				want := false
				for _, m := range c.means {
					want = want || m == name
				}
				if errors.Is(arrived, meaning) != want {
					t.Errorf("errors.Is %s is %v, want %v", name, !want, want)
				}
			}
			message := c.err.Error()
			if s, ok := status.FromError(c.err); ok {
				message = s.Message()
			}
			if arrived.Error() != message {
				t.Errorf("the message is %q, want %q", arrived, message)
			}
		})
	}
	for err, want := range map[error]string{
		rpcstatus.FromStatus(status.Error(codes.Internal, "lost")): `INTERNAL "lost"`, rpcstatus.FromStatus(status.Error(codes.ResourceExhausted, "")): `RESOURCE_EXHAUSTED ""`,
		fmt.Errorf("call: %w", context.DeadlineExceeded): `DEADLINE_EXCEEDED "call: context deadline exceeded"`, context.Canceled: `CANCELLED "context canceled"`,
		status.Error(codes.DataLoss, "lost"): `DATA_LOSS "lost"`, errors.New("not from the plugin"): "not from the plugin",
		rpcstatus.NewError("closed", plugins.ErrUnavailable): `UNAVAILABLE "closed"`, nil: "OK",
	} {
		if got := rpcstatus.Text(err); got != want {
			t.Errorf("the text of %v is %s, want %s", err, got, want)
		}
	}
	if rpcstatus.ToStatus(nil) != nil || rpcstatus.FromStatus(nil) != nil {
		t.Error("nil must stay nil")
	}
}
