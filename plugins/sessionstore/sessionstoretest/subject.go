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

// Subject is a session store to judge, and what can be done to it. What is nil and needed makes a property not judged.
type Subject struct {
	Store sessionstore.Store

	// Durable and Exclusive say that the store has the capability "durable" or "exclusive".
	Durable, Exclusive bool

	// Second is the store of one more process on the same backend, as another server has it. Of stores that are
	// durable and not exclusive.
	Second sessionstore.Store

	// Restart ends the process of Store with kill -9; the calls that follow are made on the next one. Of durable
	// stores.
	Restart func(ctx context.Context) error

	// Backend breaks the connections of Store to its backend. NoBackend says why there are none.
	Backend   kit.Backend
	NoBackend string

	// Keep is a file for a recorded history that fails; "" to keep none.
	Keep string

	behind *Window
}

// clients are the stores that a history calls.
func (s Subject) clients() []sessionstore.Store {
	if s.Second == nil {
		return []sessionstore.Store{s.Store}
	}
	return []sessionstore.Store{s.Store, s.Second}
}

// shared returns why the histories did not have the several processes that the contract is about, or nil.
func (s Subject) shared() error {
	if s.Durable && !s.Exclusive && s.Second == nil {
		return kit.CannotJudge("the store is durable and not exclusive, and there was no second process on its backend")
	}
	return nil
}

// Connected is the store at the other end of conn, with the capabilities that the plugin declares.
func Connected(ctx context.Context, conn grpc.ClientConnInterface) (Subject, error) {
	about, err := host.NewControl(conn).Info(ctx)
	if err != nil {
		return Subject{}, err
	}
	return Subject{
		Store: Declared(sessionstore.Client(conn), about.Capabilities), Durable: slices.Contains(about.Capabilities, plugins.CapabilityDurable),
		Exclusive: slices.Contains(about.Capabilities, plugins.CapabilityExclusive),
	}, nil
}

// Declared is a client's store with the capabilities that its plugin declares, and without others: every client has
// Replace.
func Declared(store sessionstore.Store, capabilities []string) sessionstore.Store {
	if slices.Contains(capabilities, plugins.CapabilityReplace) {
		return store
	}
	return struct{ sessionstore.Store }{store}
}
