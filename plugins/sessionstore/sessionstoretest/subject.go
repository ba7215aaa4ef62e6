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

// Subject is a session store to judge, with the ways to control it. A property that needs a field that is nil cannot be
// judged.
type Subject struct {
	Store sessionstore.Store

	// Durable and Exclusive say that the store has the capability "durable" or "exclusive".
	Durable, Exclusive bool

	// Second is the store of a second process on the same backend, like that of another server. It is for stores that
	// are durable and not exclusive.
	Second sessionstore.Store

	// Restart ends the process of Store with kill -9; later calls go to the next process. It is for durable stores.
	Restart func(ctx context.Context) error

	// Backend breaks the connections of Store to its backend. NoBackend says why Store has none.
	Backend   kit.Backend
	NoBackend string

	// Keep is the file in which to save a failed history; "" saves none.
	Keep string

	behind *Window
}

// clients returns the stores that a history calls.
func (s Subject) clients() []sessionstore.Store {
	if s.Second == nil {
		return []sessionstore.Store{s.Store}
	}
	return []sessionstore.Store{s.Store, s.Second}
}

// Connected returns the store at the other end of conn, with the capabilities that the plugin declares.
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

// Declared returns a client's store with only the capabilities that its plugin declares. Every client has Replace,
// whether or not the plugin does.
func Declared(store sessionstore.Store, capabilities []string) sessionstore.Store {
	if slices.Contains(capabilities, plugins.CapabilityReplace) {
		return store
	}
	return struct{ sessionstore.Store }{store}
}
