package interact

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core/rpc"
)

// Asker forwards the requests of an app to the client of a call.
type Asker interface {
	// Ask forwards elicitation/create, sampling/createMessage or roots/list. Params and result are
	// raw. A *rpc.Error is passed to the app as it is. ctx ends when the app cancels its request,
	// and when the call that it belongs to ends.
	Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

// ProgressAsker is an Asker whose client sends notifications about a request before it answers.
type ProgressAsker interface {
	// AskWithProgress is Ask. notify receives the client's notifications about the request, with the
	// app's own progress token. It may wait for the app to take them.
	AskWithProgress(ctx context.Context, method string, params json.RawMessage, notify func(rpc.Notification)) (json.RawMessage, error)
}
