package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// An errand is a question of one server to another one of its own deployment, as notices: ask, with
// which it begins; heard, as long as the other works on it; answer, or cancel, with which it ends.

const (
	kindAsk    core.ChangeKind = "ask" // these four name the server they are for as their workspace
	kindHeard  core.ChangeKind = "heard"
	kindAnswer core.ChangeKind = "answer"
	kindCancel core.ChangeKind = "cancel"
)

const (
	hearWithin  = 3 * time.Second  // a server that lives says that it has heard
	hearAgain   = 5 * time.Second  // and says so again while it works
	givenUp     = 15 * time.Second // one that says nothing for so long is gone
	maxErrand   = 4 << 20          // bytes of a question or an answer
	maxErrands  = 256              // that one server works on
	letterQueue = 16
)

// Answerer works on what another server asks. It returns when ctx ends.
type Answerer = func(ctx context.Context, question json.RawMessage) json.RawMessage

// errands are those of this server: what it asked, and what it works on. The zero value has none.
type errands struct {
	mu      sync.Mutex
	asked   map[string]chan notice
	working map[string]context.CancelFunc
	serve   func(notice) // nil until Serve
}

// Server is the name of this server among those on the database, "" with a file.
func (s *Store) Server() string {
	if s.line == nil {
		return ""
	}
	return s.line.origin
}

// Ask has another server answer a question, and returns what it says. core.CodeNotFound when there is
// no such server any more, core.CodeUnavailable when it ended before it answered, or one of the two is
// larger than 4 MiB. A caller that leaves ends the other's work.
func (s *Store) Ask(ctx context.Context, server string, question json.RawMessage) (json.RawMessage, error) {
	if s.line == nil || len(question) > maxErrand {
		return nil, core.Errorf(core.CodeUnavailable, "the question cannot be handed to another server")
	}
	e, id := &s.line.errands, rand.Text()
	letters := make(chan notice, letterQueue)
	e.mu.Lock()
	if e.asked == nil {
		e.asked = map[string]chan notice{}
	}
	e.asked[id] = letters
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.asked, id)
	}()
	if !s.line.post(kindAsk, server, id, question) {
		return nil, unavailable(errors.New("too much waits to be handed to other servers"))
	}
	heard := false
	patience := time.NewTimer(hearWithin)
	defer patience.Stop()
	for {
		select {
		case letter := <-letters:
			if letter.change.Kind == kindAnswer {
				return answerOf(letter)
			}
			heard = true
			patience.Reset(givenUp)
		case <-patience.C:
			if !heard {
				return nil, core.Errorf(core.CodeNotFound, "the server that was asked is gone")
			}
			return nil, core.Errorf(core.CodeUnavailable, "the server that was asked has ended")
		case <-ctx.Done():
			s.line.post(kindCancel, server, id, nil)
			return nil, context.Cause(ctx)
		}
	}
}

func answerOf(letter notice) (json.RawMessage, error) {
	if letter.payload == "" {
		return nil, core.Errorf(core.CodeUnavailable, "the other server's answer cannot be handed over")
	}
	return json.RawMessage(letter.payload), nil
}

// Serve has answer called for each question of another server, at most 256 at a time, until ctx ends;
// it returns when the last one has ended.
func (s *Store) Serve(ctx context.Context, answer Answerer) {
	if s.line == nil {
		<-ctx.Done()
		return
	}
	l, e := s.line, &s.line.errands
	var working sync.WaitGroup
	e.mu.Lock()
	e.working = map[string]context.CancelFunc{}
	e.serve = func(ask notice) { // holds the lock
		if ctx.Err() != nil || len(e.working) >= maxErrands {
			return
		}
		id := ask.change.Name
		one, cancel := context.WithCancel(ctx)
		e.working[id] = cancel
		working.Go(func() {
			defer cancel()
			l.work(one, ask, answer)
			e.mu.Lock()
			defer e.mu.Unlock()
			delete(e.working, id)
		})
	}
	e.mu.Unlock()
	<-ctx.Done()
	e.mu.Lock()
	e.serve = nil
	e.mu.Unlock()
	working.Wait()
}

// work answers one question.
func (l *line) work(ctx context.Context, ask notice, answer Answerer) {
	done := make(chan json.RawMessage, 1)
	go func() { done <- answer(ctx, json.RawMessage(ask.payload)) }()
	again := time.NewTicker(hearAgain)
	defer again.Stop()
	for {
		l.post(kindHeard, ask.origin, ask.change.Name, nil)
		select {
		case said := <-done:
			if len(said) > maxErrand {
				said = nil
			}
			l.post(kindAnswer, ask.origin, ask.change.Name, said)
			return
		case <-again.C:
		}
	}
}

// letter takes a notice of an errand, if it is one and for this server.
func (e *errands) letter(n notice, self string) (taken bool) {
	switch n.change.Kind {
	case kindAsk, kindHeard, kindAnswer, kindCancel:
	default:
		return false
	}
	if n.change.Workspace != self {
		return true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch n.change.Kind {
	case kindAsk:
		if e.serve != nil {
			e.serve(n)
		}
	case kindCancel:
		if cancel := e.working[n.change.Name]; cancel != nil {
			cancel()
		}
	default:
		select {
		case e.asked[n.change.Name] <- n:
		default: // nobody waits
		}
	}
	return true
}

// post hands a notice of an errand to the others, without waiting; false when too many wait already.
func (l *line) post(kind core.ChangeKind, server, id string, content json.RawMessage) bool {
	select {
	case l.outbox <- notice{change: core.Change{Kind: kind, Workspace: server, Name: id}, payload: string(content)}:
		return true
	default:
		return false
	}
}
