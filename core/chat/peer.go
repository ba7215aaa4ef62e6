package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/limits"
)

// The events of a run are kept in the memory of its server. A client can join or stop the run through any server of the
// cluster. The conversation's claim names the server that has the run, and that server answers peer requests.

const (
	peerTopic   = "runs"
	peerBatch   = 2 << 20                // bytes of events in one reply
	peerPause   = 100 * time.Millisecond // time to collect events for one reply
	peerWait    = 20 * time.Second       // maximum wait for the next event, because the requesting server may have stopped
	minAsking   = 64                     // how many of one user's requests may wait at a time, if limits.streams is not higher
	maxAsking   = 1024                   // the same, if limits.streams is 0
	askingUsers = 4                      // how many users can have the maximum number of requests waiting at once; the server handles no more than that either
	keepRelayed = time.Minute            // how long the events of an ended run are kept
)

// peerStore sends requests to peer servers: the other servers that share the state.
type peerStore interface {
	ServerID() string
	// RequestPeer sends a question to a peer server and returns its answer. The error is core.CodeNotFound if the
	// server no longer exists, and core.CodeUnavailable if it stopped before it answered.
	RequestPeer(ctx context.Context, server, topic string, question json.RawMessage) (json.RawMessage, error)
	// ServePeers answers questions from peer servers until ctx ends, up to limit at a time.
	ServePeers(ctx context.Context, topic string, limit int, answer func(ctx context.Context, question json.RawMessage) json.RawMessage)
}

// runRequest is a peer request about the run in a conversation. With Stop it stops the run. With Run it asks for the
// events of that run after number After. Otherwise it asks for the id of the active run.
type runRequest struct {
	Conversation string `json:"conversation"`
	Stop         bool   `json:"stop,omitempty"`
	Run          string `json:"run,omitempty"`
	After        int    `json:"after,omitempty"`
	Offset       int    `json:"offset,omitempty"` // bytes of the next event's data that are already known
}

// runReply is the reply to a runRequest.
type runReply struct {
	Run    string      `json:"run,omitempty"`
	After  int         `json:"after,omitempty"` // the number of the event before Events; it differs from the request's if earlier events are no longer kept
	Events []peerEvent `json:"events,omitempty"`
	Ended  bool        `json:"ended,omitempty"` // there are no more events
	Code   core.Code   `json:"code,omitempty"`  // the error's code
	Text   string      `json:"text,omitempty"`
}

// peerEvent is an event, or a piece of one that is too large for one reply.
type peerEvent struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
	More bool   `json:"more,omitempty"` // the rest must be requested
}

// servePeers answers peer requests until the engine closes.
func (e *Engine) servePeers() {
	if !e.store.Shared() {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.store.ServePeers(ctx, peerTopic, e.asking.Count(), e.answerPeer)
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

// relay returns the active run in a conversation, or, if run is not "", the run with that id, which may have ended.
// It returns nil if there is none.
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

// gather waits for the next event, and returns it together with the events that arrive shortly after it.
func (l *Live) gather(ctx context.Context, q runRequest) (runReply, error) {
	wait, cancel := context.WithTimeout(ctx, peerWait)
	defer cancel()
	batch, at, err := l.next(wait, q.After)
	if err != nil {
		return runReply{Run: l.id, After: q.After}, nil // no event yet
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
			return runReply{Run: l.id, After: q.After}, nil // the server is shutting down, or the request was cancelled
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

// askPeer sends a user's request to the server that has the run of a conversation. The error is core.CodeNotFound if
// that server has no such run, and core.CodeRateLimited if too many of the user's requests are waiting.
func (e *Engine) askPeer(ctx context.Context, server, user string, q runRequest) (runReply, error) {
	if e.asking.Take(user) != nil {
		return runReply{}, core.Errorf(core.CodeRateLimited, "too many of your requests to other servers are waiting; the limit is %d", e.asking.Share()).WithRetryAfter(time.Second)
	}
	defer e.asking.Release(user)
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

// peerOf returns the peer server that has the run of a conversation. The error is core.CodeNotFound if there is none.
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
	_, err = e.askPeer(ctx, server, ref.Owner, runRequest{Conversation: ref.ID, Stop: true})
	return err
}

// peerRun is a run on a peer server.
type peerRun struct {
	e                              *Engine
	server, user, conversation, id string
}

func (e *Engine) joinPeer(ctx context.Context, ref core.ConversationRef) (Follower, error) {
	server, err := e.peerOf(ctx, ref)
	if err != nil {
		return nil, err
	}
	r, err := e.askPeer(ctx, server, ref.Owner, runRequest{Conversation: ref.ID})
	if err != nil {
		return nil, err
	}
	return peerRun{e, server, ref.Owner, ref.ID, r.Run}, nil
}

// Follow implements Follower for a run on a peer server. It returns an error if that server has stopped.
func (p peerRun) Follow(ctx context.Context, last string, write func(id, name string, data []byte) error) error {
	var part []byte // the part of the next event
	for after := eventNumber(p.id, last); ; {
		r, err := p.e.askPeer(ctx, p.server, p.user, runRequest{Conversation: p.conversation, Run: p.id, After: after, Offset: len(part)})
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

// placesToAsk returns the places for requests to peer servers. Each stream of a run on a peer server takes one, so a user has
// at least as many as streams.
func placesToAsk(l *limits.Limits) *limits.Places {
	share := max(minAsking, cmp.Or(l.Share(limits.Streams), maxAsking))
	return limits.NewPlaces(askingUsers*share, share)
}
