package trustapi

import (
	"context"

	"github.com/ropewalk/ropewalk/core"
)

// Pins are the pinned tools of apps whose definitions changed.
type Pins interface {
	Changes(ctx context.Context, workspace string) ([]core.PinChange, error)
	Decide(ctx context.Context, c core.Caller, id string, accept bool) (core.PinChange, error)
}

// Approvals are the calls that wait for a person.
type Approvals interface {
	List(ctx context.Context, c core.Caller) ([]core.Approval, error)
	Decide(ctx context.Context, c core.Caller, id string, approve bool) (core.Approval, error)
}

// Handlers are the handlers of the package.
type Handlers struct {
	Pins      Pins
	Approvals Approvals
}
