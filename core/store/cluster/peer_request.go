package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// A peer request is a question from one server to another server of its deployment. It travels as notices:
// it starts with ask, and ends with answer or cancel. In between, the other server repeatedly sends working while
// it works on the request. In all four, the workspace is the id of the server that the notice is for, and the
// owner is the topic of the question.
const (
	kindAsk     core.ChangeKind = "ask"
	kindWorking core.ChangeKind = "heard"
	kindAnswer  core.ChangeKind = "answer"
	kindCancel  core.ChangeKind = "cancel"
)

const (
	// AcceptTimeout is how long a server may take to accept a request before the sender checks whether the server still
	// exists.
	AcceptTimeout = 3 * time.Second
	// MaxMessage is the maximum size of a question or an answer, in bytes.
	MaxMessage = 4 << 20

	workingInterval = 5 * time.Second  // between two working notices for a request
	workingTimeout  = 15 * time.Second // how long to wait for a server that sends nothing
	replyQueue      = 16
)

// Handler answers a question from another server. It must return when ctx ends.
type Handler = func(ctx context.Context, question json.RawMessage) json.RawMessage

// requests contains this server's peer requests: those that it sent, and those that it is working on. The zero
// value has none.
type requests struct {
	mu      sync.Mutex
	pending map[string]chan notice // sent by this server, by request id
	topics  map[string]*topic      // the topics of questions that this server answers, by name
}

// topic contains the questions for one handler.
type topic struct {
	handle  func(notice) (accepted bool)
	working map[string]context.CancelFunc // cancels the questions in progress, by request id
}

// Request asks another server a question about a topic. The error is core.CodeNotFound if the server no longer
// exists, and core.CodeUnavailable if it is busy or stopped before it answered, or if the question or the answer is larger than
// 4 MiB.
// When ctx ends, the other server stops working on the question.
func (c *Cluster) Request(ctx context.Context, server, topic string, question json.RawMessage) (json.RawMessage, error) {
	if len(question) > MaxMessage {
		return nil, core.Errorf(core.CodeUnavailable, "the question is too large to send to another server")
	}
	id := rand.Text()
	replies := c.requests.open(id)
	defer c.requests.close(id)
	if !c.post(requestNotice(kindAsk, server, topic, id, question)) {
		return nil, core.Errorf(core.CodeUnavailable, "too many requests are waiting to be sent to other servers")
	}
	accepted, asked := false, time.Now()
	timeout := time.NewTimer(AcceptTimeout)
	defer timeout.Stop()
	for {
		select {
		case reply := <-replies:
			if reply.change.Kind == kindAnswer {
				return answerOf(reply)
			}
			accepted = true
			timeout.Reset(workingTimeout)
		case <-timeout.C:
			if accepted || time.Since(asked) >= workingTimeout {
				return nil, core.Errorf(core.CodeUnavailable, "the other server does not respond")
			}
			switch exists, err := c.exists(ctx, server); {
			case err != nil:
				return nil, err
			case !exists:
				return nil, core.Errorf(core.CodeNotFound, "the other server no longer exists")
			}
			timeout.Reset(AcceptTimeout) // the other server is busy
		case <-ctx.Done():
			c.post(requestNotice(kindCancel, server, topic, id, nil))
			return nil, context.Cause(ctx)
		}
	}
}

func answerOf(reply notice) (json.RawMessage, error) {
	if reply.payload == "" {
		return nil, core.Errorf(core.CodeUnavailable, "the other server is busy or stopping, or its response is too large to send").WithRetryAfter(time.Second)
	}
	return json.RawMessage(reply.payload), nil
}

func (r *requests) open(id string) <-chan notice {
	replies := make(chan notice, replyQueue)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending == nil {
		r.pending = map[string]chan notice{}
	}
	r.pending[id] = replies
	return replies
}

func (r *requests) close(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pending, id)
}

// Handle calls handler for each question from another server about a topic, until stop is called. It refuses questions
// while limit of them are in progress. stop cancels those, and returns when the last one is answered.
func (c *Cluster) Handle(name string, limit int, handler Handler) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &c.requests
	var working sync.WaitGroup
	t := &topic{working: map[string]context.CancelFunc{}}
	t.handle = func(ask notice) (accepted bool) { // called with r.mu held
		if len(t.working) >= limit {
			return false
		}
		id := ask.change.Name
		one, cancel := context.WithCancel(ctx)
		t.working[id] = cancel
		working.Go(func() {
			defer cancel()
			c.answer(one, ask, handler)
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(t.working, id)
		})
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.topics == nil {
		r.topics = map[string]*topic{}
	}
	r.topics[name] = t
	return func() {
		r.mu.Lock()
		delete(r.topics, name)
		r.mu.Unlock()
		cancel()
		working.Wait()
	}
}

// answer works on one question.
func (c *Cluster) answer(ctx context.Context, ask notice, handler Handler) {
	done := make(chan json.RawMessage, 1)
	go func() { done <- handler(ctx, json.RawMessage(ask.payload)) }()
	again := time.NewTicker(workingInterval)
	defer again.Stop()
	for {
		c.post(requestNotice(kindWorking, ask.origin, ask.owner, ask.change.Name, nil))
		select {
		case answer := <-done:
			if len(answer) > MaxMessage {
				answer = nil
			}
			c.post(requestNotice(kindAnswer, ask.origin, ask.owner, ask.change.Name, answer))
			return
		case <-again.C:
		}
	}
}

// accept processes a notice if it is part of a peer request, and reports whether it is one, even if it is meant for
// another server. It answers a question immediately if this server cannot work on it, because a server that stays
// silent is assumed to be gone.
func (c *Cluster) accept(n notice) (isRequest bool) {
	switch n.change.Kind {
	case kindAsk, kindWorking, kindAnswer, kindCancel:
	default:
		return false
	}
	if n.change.Workspace != c.id {
		return true
	}
	r := &c.requests
	r.mu.Lock()
	defer r.mu.Unlock()
	switch n.change.Kind {
	case kindAsk:
		if t := r.topics[n.owner]; t == nil || !t.handle(n) {
			c.post(requestNotice(kindAnswer, n.origin, n.owner, n.change.Name, nil))
		}
	case kindCancel:
		if t := r.topics[n.owner]; t != nil && t.working[n.change.Name] != nil {
			t.working[n.change.Name]()
		}
	default:
		select {
		case r.pending[n.change.Name] <- n:
		default: // nobody is waiting
		}
	}
	return true
}

func requestNotice(kind core.ChangeKind, server, topic, id string, content json.RawMessage) notice {
	return notice{change: core.Change{Kind: kind, Workspace: server, Name: id}, owner: topic, payload: string(content)}
}
