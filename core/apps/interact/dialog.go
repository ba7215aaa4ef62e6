package interact

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/link"
)

// AppRef identifies an app. Server names are unique only within a workspace.
type AppRef struct{ Workspace, Name string }

// App is what a Dialog needs from an app: it starts instances for the session pool.
type App interface {
	IsRunning() bool
	// Roots returns the directories on this machine that the app may use.
	Roots() []string
	// StartFor starts another instance of the app, for one session or for all stateless clients. The app's start
	// timeout applies.
	StartFor(ctx context.Context, s Session) (instance.Instance, error)
}

// Session describes what an instance of the session pool is for.
type Session struct {
	ID                 string          // "" for all stateless clients, and for all clients of an account
	Account            string          // the linked account to call with; "" for none
	OneCall            bool            // whether the instance serves a single call instead of a session
	ClientCapabilities json.RawMessage // what the session's client supports; nil for stateless clients
	OnRequest          link.RequestHandler
}

// PeerRequester sends requests to the other servers of a cluster.
type PeerRequester interface {
	// ServerID returns the ID of this server.
	ServerID() string
	// RequestPeer sends a request to another server. It returns core.CodeNotFound if that server is gone.
	RequestPeer(ctx context.Context, server, topic string, request json.RawMessage) (json.RawMessage, error)
}

// Options configures a Broker.
type Options struct {
	Settings     Settings
	Peers        PeerRequester // nil for a server that is not in a cluster
	Logger       hclog.Logger
	CallTimeout  time.Duration   // how long an app may be silent during a call
	MaxCalls     int             // maximum number of calls in flight per app
	MaxAnswer    int             // maximum size of an answer in bytes, for error messages
	Grace        time.Duration   // how long a process may take to exit before it is killed
	MaxInstances int             // maximum size of the session pool
	InstanceIdle time.Duration   // how long an unused instance is kept
	Life         context.Context //nolint:containedctx // cancelled when the server shuts down
	// Begin registers background work, so that a shutdown waits for it. The returned context is cancelled when the
	// server shuts down; err is set if it is already shutting down.
	Begin func(ctx context.Context) (c context.Context, done func(), err error)
}

// Broker holds the state that the Dialogs of all apps on a server share.
type Broker struct {
	o            Options
	capabilities *capabilities
	elicitations *elicitations
	pool         *pool
	suspended    *suspendedCalls
	peerRequests *limits.Places // one per request to another server
}

// MaxPeerRequests is how many requests to other servers may wait at a time. A server also handles no more than that at
// once.
const MaxPeerRequests = 256

// NewBroker returns a Broker that has no apps yet.
func NewBroker(o Options) *Broker {
	server := ""
	if o.Peers != nil {
		server = o.Peers.ServerID()
	}
	return &Broker{
		o: o, capabilities: &capabilities{known: map[Bundle]bundleCapabilities{}}, elicitations: &elicitations{sessions: map[elicitation]string{}},
		pool: &pool{o: o, open: map[poolKey]*pooled{}}, suspended: newSuspendedCalls(statePrefixOf(server)), peerRequests: limits.NewPlaces(MaxPeerRequests, 0),
	}
}

// Dialog handles the calls and questions of one app.
type Dialog struct {
	broker *Broker
	key    AppRef
	app    App
	log    hclog.Logger
	bundle atomic.Pointer[Bundle]
	slots  *limits.Places // one per call in flight
}

// NewDialog returns the Dialog of an app. Call SetBundle before using it.
func (b *Broker) NewDialog(key AppRef, app App, log hclog.Logger) *Dialog {
	d := &Dialog{broker: b, key: key, app: app, log: log, slots: limits.NewPlaces(b.o.MaxCalls, 0)}
	d.bundle.Store(&Bundle{})
	return d
}

// SetBundle sets which bundle, and which version of it, the app runs.
func (d *Dialog) SetBundle(b Bundle) { d.bundle.Store(&b) }

// Slots returns the app's slots for calls in flight.
func (d *Dialog) Slots() *limits.Places { return d.slots }

// server identifies the app across all workspaces.
func (d *Dialog) server() string { return d.key.Workspace + "/" + d.key.Name }

func unavailable(after time.Duration, format string, args ...any) error {
	return core.Errorf(core.CodeUnavailable, format, args...).WithRetryAfter(after)
}
