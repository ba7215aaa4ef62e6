package elicit

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
	// capabilities are the client capabilities that apps see in a chat. Apps cannot use the chat's model: sampling is
	// not supported.
	capabilities = `{"elicitation":{"form":{},"url":{}}}`

	methodComplete = "notifications/elicitation/complete"

	maxQuestions = 100 // per run
	maxOpen      = 8   // per run at the same time
)

// Session is the client session of a run. Through it, the apps that the run calls can ask the person questions.
type Session struct {
	questions *Questions
	caller    core.Caller
	runID     string
	emit      Emit // nil if nobody sees the questions
	tools     *tools.Session
	over      context.Context // ends with the run
	end       context.CancelFunc

	mu   sync.Mutex
	ids  []string
	open int
}

// Open opens a session, which lasts until Close. To apps, all runs of a conversation are the same client, so that an
// app that asks questions keeps its instance. If emit is nil, all questions are declined immediately.
func (q *Questions) Open(c core.Caller, conversation, runID string, emit Emit) *Session {
	s := &Session{questions: q, caller: c, runID: runID, emit: emit}
	s.over, s.end = context.WithCancel(context.Background())
	o := tools.SessionOptions{Capabilities: json.RawMessage(capabilities), Notify: s.notify, Accounts: chosenAccounts{q.store, c.Conversation(conversation)}}
	if emit != nil { // if nobody sees the questions, no instance is needed
		o.ID = SessionID(conversation)
	}
	s.tools = q.tools.Open(c, o)
	return s
}

// chosenAccounts contains the accounts that the person has chosen in a conversation. It implements tools.AccountMemory.
type chosenAccounts struct {
	store        Store
	conversation core.ConversationRef
}

// ChosenAccount implements tools.AccountMemory.
func (c chosenAccounts) ChosenAccount(ctx context.Context, app string) (string, error) {
	return c.store.ChosenAccount(ctx, c.conversation, app)
}

// ChooseAccount implements tools.AccountMemory.
func (c chosenAccounts) ChooseAccount(ctx context.Context, app, account string) error {
	return c.store.ChooseAccount(ctx, c.conversation, app, account)
}

// SessionID returns the id under which apps know a conversation.
func SessionID(conversation string) string { return "chat " + conversation }

// Close ends the session and its open questions. Later calls are safe.
func (s *Session) Close(ctx context.Context) {
	s.end()
	s.tools.Pause(ctx)
	s.mu.Lock()
	ids := s.ids
	s.ids = nil
	s.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	if err := s.questions.remove(ctx, ids); err != nil {
		s.questions.log.Warn("could not remove the questions from a run that has ended", "run", s.runID, "error", err)
	}
}

// notify emits an event when an app reports that an interaction at a URL is complete.
func (s *Session) notify(n rpc.Notification) {
	var params struct {
		ID string `json:"elicitationId"`
	}
	if n.Method != methodComplete || s.emit == nil || s.over.Err() != nil || json.Unmarshal(n.Params, &params) != nil || params.ID == "" {
		return
	}
	s.emit(EventComplete, completeEvent{RunID: s.runID, ElicitationID: params.ID})
}

// Asker returns an Asker for one tool call; name is the tool's full name.
func (s *Session) Asker(call, name string) *Asker {
	server, tool, _ := strings.Cut(name, "__")
	return &Asker{Session: s, call: call, server: server, tool: tool}
}

// From returns the origin of a tool call that may ask through a.
func (a *Asker) From() tools.From { return tools.From{Session: a.tools, Asker: a} }

// countQuestion counts a new open question. It returns false if there are too many.
func (s *Session) countQuestion(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ids) == maxQuestions || s.open == maxOpen {
		return false
	}
	s.ids, s.open = append(s.ids, id), s.open+1
	return true
}

func (s *Session) closeQuestion() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}
