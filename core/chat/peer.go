package chat

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// The events of a run are in the memory of its server. A client can join or stop the run through any server of a cluster: the
// claim of the conversation names the one that has the run, which answers peer requests.

const (
	peerTopic   = "runs"
	peerBatch   = 2 << 20                // bytes of events in one answer
	peerPause   = 100 * time.Millisecond // in which events gather for one answer
	peerWait    = 20 * time.Second       // for the next event: the server that asked may have ended
	keepRelayed = time.Minute            // of the events of a run that has ended
)

// peerStore sends requests to the other servers that share the state.
type peerStore interface {
	ServerID() string
	// RequestPeer has another server answer a question: core.CodeNotFound when it is gone, core.CodeUnavailable when it ended
	// before it answered.
	RequestPeer(ctx context.Context, server, topic string, question json.RawMessage) (json.RawMessage, error)
	// ServePeers has questions of other servers answered, until ctx ends.
	ServePeers(ctx context.Context, topic string, answer func(ctx context.Context, question json.RawMessage) json.RawMessage)
}

// holderOf is the holder of a claim of this server.
func holderOf(server string) string { return server + "." + core.RandomID("run_") }

// runRequest asks another server for the events of a run after the one with a number; or which run goes on in the
// conversation, without Run; or to stop that one.
type runRequest struct {
	Conversation string `json:"conversation"`
	Stop         bool   `json:"stop,omitempty"`
	Run          string `json:"run,omitempty"`
	After        int    `json:"after,omitempty"`
	Offset       int    `json:"offset,omitempty"` // how much of the next event's data is known
}

// runReply is the answer to a runRequest.
type runReply struct {
	Run    string      `json:"run,omitempty"`
	After  int         `json:"after,omitempty"` // the number of the event before Events: the earliest may not be kept
	Events []peerEvent `json:"events,omitempty"`
	Ended  bool        `json:"ended,omitempty"` // no event follows
	Code   core.Code   `json:"code,omitempty"`  // of an error
	Text   string      `json:"text,omitempty"`
}

// peerEvent is an event, or a piece of one that is too large for an answer.
type peerEvent struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
	More bool   `json:"more,omitempty"` // the rest is to be asked for
}

// servePeers answers other servers, until the engine closes.
func (e *Engine) servePeers() {
	if !e.store.Shared() {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.store.ServePeers(ctx, peerTopic, e.answerPeer)
	}()
	e.detached.peers = func() {
		cancel()
		<-ended
	}
}

func (e *Engine) answerPeer(ctx context.Context, question json.RawMessage) json.RawMessage {
	var q runRequest
	var r runReply
	err := json.Unmarshal(question, &q)
	if err == nil {
		r, err = e.replyTo(ctx, q)
	}
	if err != nil {
		r = runReply{Code: core.CodeOf(err), Text: core.TextOf(err)}
	}
	answer, err := json.Marshal(r)
	if err != nil {
		return nil
	}
	return answer
}

func (e *Engine) replyTo(ctx context.Context, q runRequest) (runReply, error) {
	switch {
	case q.Stop && !e.claims.isActive(q.Conversation):
		return runReply{}, errNoRun()
	case q.Stop:
		return runReply{}, e.claims.Interrupt(ctx, q.Conversation)
	}
	l := e.detached.relay(q.Conversation, q.Run)
	if l == nil {
		return runReply{}, errNoRun()
	}
	if q.Run == "" {
		return runReply{Run: l.id}, nil
	}
	return l.gather(ctx, q)
}

// relay returns the run that goes on in a conversation, or the one of that id, which may have ended; nil without one.
func (d *detached) relay(conversation, run string) *Live {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.live[conversation]
	if run != "" && (l == nil || l.id != run) {
		l = d.over[run]
	}
	if l != nil {
		l.relayed.Store(true)
	}
	return l
}

// gather waits for events, and returns those that are there soon after the first one.
func (l *Live) gather(ctx context.Context, q runRequest) (runReply, error) {
	wait, cancel := context.WithTimeout(ctx, peerWait)
	defer cancel()
	batch, at, err := l.next(wait, q.After)
	if err != nil {
		return runReply{Run: l.id, After: q.After}, nil // nothing yet
	}
	if len(batch) > 0 {
		pause := time.NewTimer(peerPause)
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-l.ended:
		case <-ctx.Done():
		}
		if batch, at, err = l.next(ctx, q.After); err != nil {
			return runReply{Run: l.id, After: q.After}, nil // the server ends, or nobody asks any more
		}
	}
	r := runReply{Run: l.id, After: at, Ended: len(batch) == 0}
	room := peerBatch
	for i, ev := range batch {
		data := ev.data
		if i == 0 && at == q.After {
			data = data[min(q.Offset, len(data)):]
		}
		if len(data) > room && i > 0 {
			break
		}
		piece := data[:min(room, len(data))]
		r.Events = append(r.Events, peerEvent{Name: ev.name, Data: piece, More: len(piece) < len(data)})
		room -= len(piece)
	}
	return r, nil
}

// askPeer has the server that has the run of a conversation answer a request; core.CodeNotFound when there is no such run.
func (e *Engine) askPeer(ctx context.Context, server string, q runRequest) (runReply, error) {
	question, err := json.Marshal(q)
	if err != nil {
		return runReply{}, err
	}
	answer, err := e.store.RequestPeer(ctx, server, peerTopic, question)
	if core.CodeOf(err) == core.CodeNotFound {
		return runReply{}, errNoRun()
	}
	var r runReply
	if err == nil {
		err = json.Unmarshal(answer, &r)
	}
	if err == nil && r.Code != "" {
		err = core.Errorf(r.Code, "%s", r.Text)
	}
	return r, err
}

// peerOf returns the other server that has the run of a conversation; core.CodeNotFound without one.
func (e *Engine) peerOf(ctx context.Context, ref core.ConversationRef) (string, error) {
	if !e.store.Shared() {
		return "", errNoRun()
	}
	holder, err := e.store.RunHolder(ctx, ref)
	server, _, named := strings.Cut(holder, ".")
	if core.CodeOf(err) == core.CodeNotFound || err == nil && (!named || server == e.store.ServerID()) {
		err = errNoRun()
	}
	return server, err
}

func (e *Engine) stopPeer(ctx context.Context, ref core.ConversationRef) error {
	server, err := e.peerOf(ctx, ref)
	if err != nil {
		return err
	}
	_, err = e.askPeer(ctx, server, runRequest{Conversation: ref.ID, Stop: true})
	return err
}

// peerRun is a run of another server.
type peerRun struct {
	e                        *Engine
	server, conversation, id string
}

func (e *Engine) joinPeer(ctx context.Context, ref core.ConversationRef) (Follower, error) {
	server, err := e.peerOf(ctx, ref)
	if err != nil {
		return nil, err
	}
	r, err := e.askPeer(ctx, server, runRequest{Conversation: ref.ID})
	if err != nil {
		return nil, err
	}
	return peerRun{e, server, ref.ID, r.Run}, nil
}

// Follow is Live.Follow for a run of another server. It returns an error when that server has ended.
func (p peerRun) Follow(ctx context.Context, last string, write func(id, name string, data []byte) error) error {
	var part []byte // of the next event
	for after := eventNumber(p.id, last); ; {
		r, err := p.e.askPeer(ctx, p.server, runRequest{Conversation: p.conversation, Run: p.id, After: after, Offset: len(part)})
		if err != nil || r.Ended {
			return err
		}
		if r.After != after {
			part, after = nil, r.After
		}
		for _, ev := range r.Events {
			if part = append(part, ev.Data...); ev.More {
				break
			}
			after++
			if write(eventID(p.id, after), ev.Name, part) != nil {
				return ctx.Err()
			}
			part = nil
		}
	}
}
