package sessionstoretest

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/host"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// Subject is a session store to check, and what can be done to it. What is nil leaves checks out:
// they are skipped and say so.
type Subject struct {
	Store sessionstore.Store

	// Durable says that the store has the capability "durable".
	Durable bool

	// Open starts one more process of the store on the same backend, as another server would.
	Open func(ctx context.Context) (*Process, error)

	// Exclusive says that the store has the capability "exclusive": only one process has the backend at a
	// time, and Open is not used.
	Exclusive bool

	// Restart ends the process of Store with kill -9; the calls that follow are made on the next one.
	Restart func(ctx context.Context) error

	// Backend takes the backend of Store away and brings it back.
	Backend kit.Backend
}

// Process is one more process of a store.
type Process struct {
	Store sessionstore.Store
	Kill  func() // ends it at once, without a chance to finish anything; nil when that is not possible
	Close func()
}

// open returns one more process, or why there is none.
func (s Subject) open(ctx context.Context) (*Process, error) {
	if !s.Durable {
		return nil, kit.Skip(`the store has not the capability "durable"`)
	}
	if s.Exclusive {
		return nil, kit.Skip(`the store has the capability "exclusive": two processes never share its backend`)
	}
	if s.Open == nil {
		return nil, kit.Skip("nothing was given to start a second process with")
	}
	p, err := s.Open(ctx)
	if err != nil {
		return nil, kit.Failf("start one more process on the same backend: %w", err)
	}
	return p, nil
}

// Connected is the store at the other end of conn, with the capabilities that the plugin declares.
func Connected(ctx context.Context, conn grpc.ClientConnInterface) (Subject, error) {
	about, err := host.NewControl(conn).Info(ctx)
	if err != nil {
		return Subject{}, err
	}
	store := sessionstore.Client(conn)
	if !slices.Contains(about.Capabilities, plugins.CapabilityReplace) {
		store = struct{ sessionstore.Store }{store} // without Replace, which every client has
	}
	return Subject{
		Store: store, Durable: slices.Contains(about.Capabilities, plugins.CapabilityDurable),
		Exclusive: slices.Contains(about.Capabilities, plugins.CapabilityExclusive),
	}, nil
}
