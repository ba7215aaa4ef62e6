package interact

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/link"
)

// AppKey names an app: short names are unique in a workspace only.
type AppKey struct{ Workspace, Name string }

// App starts the instances of the session pool.
type App interface {
	IsRunning() bool
	// Roots are the directories of this machine that the app may use.
	Roots() []string
	// StartFor starts another instance of the app, for one session or for all stateless clients, in the time that the
	// app has.
	StartFor(ctx context.Context, s Session) (instance.Instance, error)
}

// Session is what an instance of the session pool is started for.
type Session struct {
	ID                 string          // "" for all stateless clients, and for all clients of an account
	Account            string          // the linked account that it is called with; "" for none
	OneCall            bool            // it serves one call, and no session
	ClientCapabilities json.RawMessage // of the session's client; nil for stateless clients
	OnRequest          link.RequestHandler
}

// PeerRequester sends requests to the other servers of a cluster.
type PeerRequester interface {
	// ServerID is this server's id.
	ServerID() string
	// RequestPeer sends a request about a topic to another server: core.CodeNotFound when it is gone.
	RequestPeer(ctx context.Context, server, topic string, request json.RawMessage) (json.RawMessage, error)
}

// Options is what a Broker is made of.
type Options struct {
	Settings     Settings
	Peers        PeerRequester // nil for a server on its own
	Logger       hclog.Logger
	CallTimeout  time.Duration   // how long an app may be silent during a call
	MaxCalls     int             // calls of one app in flight
	MaxAnswer    int             // bytes of an answer, named in errors
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
	key    AppKey
	app    App
	log    hclog.Logger
	bundle atomic.Pointer[Bundle]
	slots  chan struct{} // holds one token for each call in flight
}

// NewDialog returns the Dialog of an app, whose version is to be set.
func (b *Broker) NewDialog(key AppKey, app App, log hclog.Logger) *Dialog {
	d := &Dialog{broker: b, key: key, app: app, log: log, slots: make(chan struct{}, b.o.MaxCalls)}
	d.bundle.Store(&Bundle{})
	return d
}

// SetBundle says which version of which bundle the app is.
func (d *Dialog) SetBundle(b Bundle) { d.bundle.Store(&b) }

// Slots are the places for calls in flight: who sends holds one until it receives.
func (d *Dialog) Slots() chan struct{} { return d.slots }

// AcquireSlot takes a place among the app's calls in flight, if one is free.
func (d *Dialog) AcquireSlot() bool {
	select {
	case d.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

// ReleaseSlot is the opposite of AcquireSlot.
func (d *Dialog) ReleaseSlot() { <-d.slots }

// server names the app among those of all workspaces.
func (d *Dialog) server() string { return d.key.Workspace + "/" + d.key.Name }

func unavailable(after time.Duration, format string, args ...any) error {
	return core.Errorf(core.CodeUnavailable, format, args...).WithRetryAfter(after)
}
