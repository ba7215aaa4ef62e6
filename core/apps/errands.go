package apps

import (
	"encoding/json"
	"sync"

	"github.com/ropewalk/ropewalk/core/rpc"
)

// maxErrands bounds the elicitations whose end is still to be told; past it the oldest are forgotten.
const maxErrands = 1000

// errands remembers which session was sent to a URL, so that the news of its end
// (notifications/elicitation/complete) reaches that session and nobody else.
type errands struct {
	mu    sync.Mutex
	open  map[errand]string // the session
	order []errand
}

type errand struct {
	app key
	id  string
}

func newErrands() *errands { return &errands{open: map[errand]string{}} }

func elicitationID(params json.RawMessage) string {
	var said struct {
		ID string `json:"elicitationId"`
	}
	_ = json.Unmarshal(params, &said) // without an id there is nothing to remember
	return said.ID
}

func (e *errands) note(app key, params json.RawMessage, session string) {
	id := elicitationID(params)
	if id == "" || session == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	one := errand{app, id}
	if _, known := e.open[one]; !known {
		e.order = append(e.order, one)
	}
	e.open[one] = session
	if len(e.order) > maxErrands {
		delete(e.open, e.order[0])
		e.order = e.order[1:]
	}
}

// session is who a notification of an elicitation's end is for, "" when nobody is known.
func (e *errands) session(app key, n rpc.Notification) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open[errand{app, elicitationID(n.Params)}]
}
