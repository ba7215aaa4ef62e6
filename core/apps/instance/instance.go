package instance

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/link/remote"
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

	StartTimeout time.Duration // named in errors; the context enforces it

	Declared bool          // the configuration declares the app, with its user_config
	Grants   []core.Access // that people granted, checked and in force
	Given    []core.Access // those of Grants that may cost the app its own user: they come from user_config

	OnDenied func(a core.Access, count int) // called when the sandbox refused something; nil to not be

	// Of a remote app that is called with accounts: the account that the instance is for. Without one, the instance cannot be
	// called, and its lists are those that are published.
	Authorizer remote.Authorizer
	Published  core.AppLists

	Stateless          bool            // try link.StatelessVersion first, instead of the handshake
	ClientCapabilities json.RawMessage // the client capabilities announced to the app; nil for none

	OnRequest      link.RequestHandler                   // answers the app's requests to its client
	OnNotification func(rpc.Notification, []link.Caller) // as link.Options.OnNotification; nil to drop them
}

// StartedTooLong is the time that a start took up, with the setting that gives it more.
func (s Spec) StartedTooLong() string {
	return fmt.Sprintf("%v; apps.%s.startTimeoutSeconds, or --timeout at its installation, gives it longer", s.StartTimeout, s.Record.Name)
}

// The requests of an app to its client.
const (
	MethodElicit = "elicitation/create"
	MethodSample = "sampling/createMessage"
	MethodRoots  = "roots/list"
)
