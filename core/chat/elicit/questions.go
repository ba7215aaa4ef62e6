package elicit

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tools"
)

const (
	defaultTimeout = 5 * time.Minute        // how long a question waits for a reply
	pollInterval   = 250 * time.Millisecond // for replies that arrive at another server
	storeTimeout   = 10 * time.Second       // for writes after a run has ended
)

// Store stores the questions of all servers that share the state. The methods for questions are only used if Shared
// returns true.
type Store interface {
	Shared() bool
	PutQuestion(ctx context.Context, q core.Question) error
	Question(ctx context.Context, id string) (core.Question, error)             // core.CodeNotFound
	SettleQuestion(ctx context.Context, id string, reply json.RawMessage) error // core.CodeAlreadyAnswered unless reply is the first
	ReplyTo(ctx context.Context, id string) (json.RawMessage, error)            // nil if there is none
	DeleteQuestions(ctx context.Context, ids []string) error

	// The accounts chosen in conversations; see tools.AccountMemory.
	ChosenAccount(ctx context.Context, ref core.ConversationRef, app string) (account string, err error)
	ChooseAccount(ctx context.Context, ref core.ConversationRef, app, account string) error
}

// Tools opens the client sessions through which apps ask questions.
type Tools interface {
	Open(c core.Caller, o tools.SessionOptions) *tools.Session
	CheckForm(schema, content json.RawMessage) error // core.CodeInvalidInput if content does not match
}

// Questions contains the questions from this server's runs. It is safe for concurrent use.
type Questions struct {
	store   Store
	tools   Tools
	log     hclog.Logger
	timeout atomic.Int64

	mu    sync.Mutex
	known map[string]*question // by id, until the end of their run
}

// New returns an empty Questions. See SetTimeout for timeout.
func New(store Store, tools Tools, timeout time.Duration, log hclog.Logger) *Questions {
	q := &Questions{store: store, tools: tools, log: log, known: map[string]*question{}}
	q.SetTimeout(timeout)
	return q
}

// SetTimeout sets how long a new question waits for a reply before it is treated as declined; 0 means 5 minutes.
func (q *Questions) SetTimeout(d time.Duration) { q.timeout.Store(int64(cmp.Or(d, defaultTimeout))) }

// question is a question that is waiting for a reply or has one.
type question struct {
	core.Question
	reply   chan Reply // buffered, so that settling never blocks
	settled bool       // guarded by Questions.mu
}

// add registers a question, so that it can be answered.
func (q *Questions) add(ctx context.Context, one *question) error {
	if q.store.Shared() {
		if err := q.store.PutQuestion(ctx, one.Question); err != nil {
			return err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.known[one.ID] = one
	return nil
}

// local returns a question from one of this server's runs, or nil if there is none.
func (q *Questions) local(id string) *question {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.known[id]
}

// find returns a question from any server's runs. local is nil if the question is not this server's.
func (q *Questions) find(ctx context.Context, local *question, id string) (core.Question, error) {
	switch {
	case local != nil:
		return local.Question, nil
	case !q.store.Shared():
		return core.Question{}, unknownQuestion()
	}
	found, err := q.store.Question(ctx, id)
	if core.CodeOf(err) == core.CodeNotFound {
		err = unknownQuestion()
	}
	return found, err
}

// settle records the reply to a question. The error is core.CodeAlreadyAnswered unless it is the first reply. local
// is nil if the question belongs to another server.
func (q *Questions) settle(ctx context.Context, id string, local *question, r Reply) error {
	if !q.store.Shared() {
		return q.settleLocal(local, r)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err = q.store.SettleQuestion(ctx, id, raw); err == nil && local != nil {
		_ = q.settleLocal(local, r) // so that the asker does not have to poll
	}
	if core.CodeOf(err) == core.CodeNotFound { // the run has ended in the meantime
		err = unknownQuestion()
	}
	return err
}

func (q *Questions) settleLocal(one *question, r Reply) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if one.settled {
		return core.Errorf(core.CodeAlreadyAnswered, "the question has already been answered, or has timed out")
	}
	one.settled = true
	one.reply <- r
	return nil
}

// storedReply returns the reply that another server received, if there is one.
func (q *Questions) storedReply(ctx context.Context, one *question) (r Reply, ok bool) {
	if !q.store.Shared() {
		return r, false
	}
	raw, err := q.store.ReplyTo(ctx, one.ID)
	if err != nil || len(raw) == 0 { // no reply yet, or the database is temporarily unavailable
		return r, false
	}
	return r, json.Unmarshal(raw, &r) == nil
}

// remove deletes the questions of runs that have ended.
func (q *Questions) remove(ctx context.Context, ids []string) error {
	q.mu.Lock()
	for _, id := range ids {
		delete(q.known, id)
	}
	q.mu.Unlock()
	if !q.store.Shared() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return q.store.DeleteQuestions(ctx, ids)
}
