package instance

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// Instance is a started app that has completed the MCP handshake.
type Instance interface {
	Call(ctx context.Context, r link.Request) (json.RawMessage, error)
	List(ctx context.Context, kind core.Kind) ([]json.RawMessage, error)
	Subscribe(ctx context.Context, uri string) error
	Unsubscribe(ctx context.Context, uri string) error
	Notify(ctx context.Context, method string, params json.RawMessage) error
	Info() link.Info

	AddListChange(kind core.Kind)
	ListsChanged() <-chan struct{} // receives after the app announced changed lists
	TakeListChanges() []core.Kind  // which; each is returned once

	Done() <-chan struct{} // closed when the instance cannot be called any more
	Failure() *Failure     // why, after Done
	Shutdown(grace time.Duration) error
}

// Spec says how to start one instance of an app.
type Spec struct {
	Record  core.Installation
	DataDir string // where the app may keep its data; made when it does not exist
	Layer   string // where what the app writes into its bundle is kept; "" for nowhere
	LogPath string // of the log file of its stderr
	Logger  hclog.Logger
	Sandbox config.Sandbox // how its processes are confined

	Stateless          bool            // try link.StatelessVersion first, instead of the handshake
	ClientCapabilities json.RawMessage // the client capabilities announced to the app; nil for none

	OnRequest      link.RequestHandler    // answers the app's requests to its client
	OnNotification func(rpc.Notification) // receives notifications that belong to no call; nil to drop them
}

// The requests of an app to its client.
const (
	MethodElicit = "elicitation/create"
	MethodSample = "sampling/createMessage"
	MethodRoots  = "roots/list"
)
