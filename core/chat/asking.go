package chat

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
)

const (
	// capabilities is what apps are told that a person who chats can be asked. The chat's model is
	// not lent to them: sampling is refused, which the app is told.
	capabilities = `{"elicitation":{"form":{},"url":{}}}`

	complete = "notifications/elicitation/complete"

	questionsRun  = 100 // of one run
	questionsOpen = 8   // of one run at a time
)

// asking is how the apps that a run calls ask its person.
type asking struct {
	e       *Engine
	caller  core.Caller
	runID   string
	emit    Emit // nil when nobody sees what is asked
	session *tools.Session
	over    context.Context // ends with the run
	end     context.CancelFunc

	mu   sync.Mutex
	ids  []string
	open int
}

// ask lets apps ask the person of a run until close. All runs of a conversation are one client to
// them, so that an app that asks keeps the instance it has for it.
func (e *Engine) ask(c core.Caller, conversation, runID string, emit Emit) *asking {
	a := &asking{e: e, caller: c, runID: runID, emit: emit}
	a.over, a.end = context.WithCancel(context.Background())
	o := tools.SessionOptions{Capabilities: json.RawMessage(capabilities), Notify: a.told}
	if emit != nil { // else everything is declined at once, which takes no instance
		o.ID = sessionOf(conversation)
	}
	a.session = e.tools.Open(c, o)
	return a
}

// sessionOf is what apps know a conversation by.
func sessionOf(conversation string) string { return "chat " + conversation }

// close ends what is asked. It may be called again.
func (a *asking) close(ctx context.Context) {
	a.end()
	a.session.Pause(ctx)
	a.mu.Lock()
	ids := a.ids
	a.ids = nil
	a.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	a.e.questions.forget(ids)
	if !a.e.store.Shared() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
	defer cancel()
	if err := a.e.store.DeleteQuestions(ctx, ids); err != nil {
		a.e.log.Warn("What apps asked in a run is kept for longer than the run", "run", a.runID, "error", err)
	}
}

// told passes on that an app is done with what the person was sent to an address for.
func (a *asking) told(n rpc.Notification) {
	var said struct {
		ID string `json:"elicitationId"`
	}
	if n.Method != complete || a.emit == nil || a.over.Err() != nil || json.Unmarshal(n.Params, &said) != nil || said.ID == "" {
		return
	}
	a.emit(Event{EventElicitationComplete, elicitationComplete{RunID: a.runID, ElicitationID: said.ID}})
}

// about is who is asked by the call of a tool, which the client knows by an id.
func (a *asking) about(call, name string) *asker {
	server, tool, _ := strings.Cut(name, "__")
	return &asker{asking: a, call: call, server: server, tool: tool}
}

// enter counts one more question; false when there are too many.
func (a *asking) enter(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.ids) == questionsRun || a.open == questionsOpen {
		return false
	}
	a.ids, a.open = append(a.ids, id), a.open+1
	return true
}

func (a *asking) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open--
}
