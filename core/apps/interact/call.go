package interact

import (
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// Call is one call of an app. Params and the result are raw: they are not decoded.
type Call struct {
	Method string
	Target string                 // the tool or prompt that is called, for its span; "" for none
	Params json.RawMessage        // one JSON object, nil for none
	Notify func(rpc.Notification) // receives the app's notifications about the call, in wire order; nil to drop them
	Client *Client                // the client that the call is made for; nil for one that cannot be asked anything
	User   string                 // the id of the user who calls; "" for the server itself
	Asker  Asker                  // asks Client while the call is in flight; nil when it cannot be asked
	Owner  string                 // the identity of a stateless client: only the owner can resume its suspended calls

	Mirrors []core.Mirror // of the tool that is called: arguments that remote apps of link.StatelessVersion get in headers

	// AsTask says that the tool that is called can only be called as a task (taskSupport: required).
	AsTask bool

	// Wake must hold one, and receives without blocking each time there is something for the pending
	// call to take. nil for a caller that only waits.
	Wake chan struct{}
}
