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
	ListsChanged() <-chan struct{} // receives after the app has announced changed lists
	TakeListChanges() []core.Kind  // the changed lists; each change is returned once

	Done() <-chan struct{} // closed when the instance can no longer be called
	Failure() *Failure     // why it stopped; call it after Done is closed
	Shutdown(grace time.Duration) error
}

// Spec describes how to start one instance of an app.
type Spec struct {
	Record  core.Installation
	DataDir string // where the app may keep its data; created if necessary
	Layer   string // where the app's writes to its bundle are kept; "" if it may not write there
	LogPath string // the log file for stderr
	Logger  hclog.Logger
	Sandbox config.Sandbox // how its processes are confined

	StartTimeout time.Duration // for error messages; the context enforces it

	Declared         map[string]core.Secret // the values of an app that the configuration declares; nil for any other app
	Grants           []core.Access          // grants that were checked and are in force
	UserConfigGrants []core.Access          // the Grants that come from user_config, for which the app may lose its own user

	Trace    bool                           // report to OnDenied the files that the app opens and cannot see
	OnDenied func(a core.Access, count int) // called when the sandbox denied something; may be nil

	// For a remote app that uses accounts, Authorizer is the account of the instance. Without an account, the instance
	// cannot be called, and it lists what is in Published.
	Authorizer remote.Authorizer
	Published  core.AppLists
	Anonymous  bool // connect without an account, although the app uses accounts

	Stateless          bool            // try link.StatelessVersion before the stateful handshake
	ClientCapabilities json.RawMessage // client capabilities announced to the app; nil for none

	OnRequest      link.RequestHandler                   // answers the app's requests to its client
	OnNotification func(rpc.Notification, []link.Caller) // see link.Options.OnNotification; nil to drop notifications
}

// StartedTooLong returns the start timeout and how to raise it, for error messages.
func (s Spec) StartedTooLong() string {
	return fmt.Sprintf("%v; to allow more time, set apps.%s.startTimeoutSeconds, or --timeout when you install it", s.StartTimeout, s.Record.Name)
}

// These are the requests that an app can send to its client.
const (
	MethodElicit = "elicitation/create"
	MethodSample = "sampling/createMessage"
	MethodRoots  = "roots/list"
)
