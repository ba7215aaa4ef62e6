package interact

import (
	"encoding/json"
	"sync"

	"github.com/ropewalk/ropewalk/core/rpc"
)

// maxElicitations bounds the URL elicitations that are remembered; past it the oldest are forgotten.
const maxElicitations = 1000

// elicitations remembers which session was sent to a URL, so that the notification of its completion
// (notifications/elicitation/complete) reaches that session only.
type elicitations struct {
	mu       sync.Mutex
	sessions map[elicitation]string
	order    []elicitation
}

type elicitation struct {
	app AppKey
	id  string
}

func newElicitations() *elicitations { return &elicitations{sessions: map[elicitation]string{}} }

func elicitationID(params json.RawMessage) string {
	var elicit struct {
		ID string `json:"elicitationId"`
	}
	_ = json.Unmarshal(params, &elicit) // without an id there is nothing to remember
	return elicit.ID
}

func (e *elicitations) record(d *Dialog, params json.RawMessage, session string) {
	id := elicitationID(params)
	if id == "" || session == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	one := elicitation{d.app.Key(), id}
	if _, known := e.sessions[one]; !known {
		e.order = append(e.order, one)
	}
	e.sessions[one] = session
	if len(e.order) > maxElicitations {
		delete(e.sessions, e.order[0])
		e.order = e.order[1:]
	}
}

// ElicitationSession returns the session that a notification about the end of an elicitation is for,
// "" when it is not known.
func (d *Dialog) ElicitationSession(n rpc.Notification) string {
	e := d.broker.elicitations
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sessions[elicitation{d.app.Key(), elicitationID(n.Params)}]
}
