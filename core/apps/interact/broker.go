package interact

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/link"
)

// AppKey names an app: short names are unique in a workspace only.
type AppKey struct{ Workspace, Name string }

// App is an installed app as this package needs it.
type App interface {
	Key() AppKey
	Bundle() Bundle
	IsRunning() bool
	// StartFor starts another instance of the app, for one session or for all stateless clients.
	StartFor(ctx context.Context, s Session) (Instance, error)
	// AcquireSlot takes a place among the app's calls in flight, if one is free.
	AcquireSlot() bool
	ReleaseSlot()
	// CallError says what became of a call without a result. limit is the call's own context, which
	// the clock of the call may have ended.
	CallError(ctx, limit context.Context, in Instance, method string, err error) error
}

// Instance is a started app as this package needs it.
type Instance interface {
	Call(ctx context.Context, r link.Request) (json.RawMessage, error)
	Subscribe(ctx context.Context, uri string) error
	Unsubscribe(ctx context.Context, uri string) error
	Notify(ctx context.Context, method string, params json.RawMessage) error
	Info() link.Info
	Done() <-chan struct{}
	Shutdown(grace time.Duration) error
}

// Session is what an instance of the session pool is started for.
type Session struct {
	ID                 string          // "" for all stateless clients
	OneCall            bool            // it serves one call, and no session
	ClientCapabilities json.RawMessage // of the session's client; nil for stateless clients
	OnRequest          link.RequestHandler
}

// PeerRequester sends requests to the other servers of a cluster.
type PeerRequester interface {
	// ServerID is this server's id.
	ServerID() string
	// RequestPeer sends a request to another server: core.CodeNotFound when it is gone.
	RequestPeer(ctx context.Context, server string, request json.RawMessage) (json.RawMessage, error)
}

// Options is what a Broker is made of.
type Options struct {
	Settings     Settings
	Peers        PeerRequester // nil for a server on its own
	Logger       hclog.Logger
	CallTimeout  time.Duration   // how long an app may be silent during a call
	StartTimeout time.Duration   // of an instance of the session pool
	Grace        time.Duration   // from asking a process to end to killing it
	MaxInstances int             // of the session pool
	InstanceIdle time.Duration   // how long an unused instance is kept
	Life         context.Context //nolint:containedctx // ends when the server shuts down
	// Begin counts work in the background, so that the shutdown waits for it. Its context ends when the
	// server shuts down, and its error says that it does.
	Begin func(ctx context.Context) (c context.Context, done func(), err error)
}

// Broker is shared by the dialogs of all apps of a server.
type Broker struct {
	o            Options
	capabilities *capabilities
	elicitations *elicitations
	pool         *pool
	suspended    *suspendedCalls
}

// NewBroker returns a Broker without apps.
func NewBroker(o Options) *Broker {
	server := ""
	if o.Peers != nil {
		server = o.Peers.ServerID()
	}
	return &Broker{
		o: o, capabilities: newCapabilities(), elicitations: newElicitations(),
		pool: newPool(o), suspended: newSuspendedCalls(statePrefixOf(server)),
	}
}

// Dialog is one app's side of a Broker.
type Dialog struct {
	broker *Broker
	app    App
	log    hclog.Logger
}

// NewDialog returns the Dialog of an app.
func (b *Broker) NewDialog(app App, log hclog.Logger) *Dialog {
	return &Dialog{broker: b, app: app, log: log}
}
