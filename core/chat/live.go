package chat

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

const (
	maxDetached = time.Hour // that a run may take without its client
	maxLive     = 8 << 20   // bytes of events that are kept for clients that join a run
)

// errServerEnds is why the context of a detached run ends with its server.
var errServerEnds = errors.New("the server ends")

// Live is a run that goes on whether its client listens or not, with the events that it has had.
type Live struct {
	id      string      // of the run
	relayed atomic.Bool // a client of another server has joined it
	answer  Answer      // with err the result, once ended is closed
	err     error
	ended   chan struct{}

	mu     sync.Mutex
	events []liveEvent
	first  int           // number of the first of events
	size   int           // bytes of events
	grown  chan struct{} // closed at the next event
}

type liveEvent struct {
	name string
	data []byte
}

// detached are the runs that go on without their clients, by conversation.
type detached struct {
	life  context.Context //nolint:containedctx // ends when the engine closes
	end   context.CancelCauseFunc
	runs  sync.WaitGroup
	peers func() // ends serving other servers

	mu   sync.Mutex
	live map[string]*Live
	over map[string]*Live // by run: those that have ended, until other servers have read them
}

func newDetached() *detached {
	d := &detached{live: map[string]*Live{}, over: map[string]*Live{}, peers: func() {}}
	d.life, d.end = context.WithCancelCause(context.Background())
	return d
}

// close ends all runs, and waits until they are stored, or until ctx ends.
func (d *detached) close(ctx context.Context) error {
	d.end(errServerEnds)
	stored := make(chan struct{})
	go func() {
		defer close(stored)
		d.runs.Wait()
		d.peers() // which have got the ends of the runs by now
	}()
	select {
	case <-stored:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Detach does a run that goes on when its client leaves. It ends with the context that within makes of the engine's, which
// is to end with the rights of the run's person; after an hour; or with the engine, as incomplete. done is called at the end.
func (e *Engine) Detach(run *Run, within func(context.Context) (context.Context, context.CancelFunc), done func()) *Live {
	l := &Live{id: run.id, ended: make(chan struct{}), grown: make(chan struct{}), first: 1}
	d := e.detached
	d.mu.Lock()
	d.live[run.ref.ID] = l
	d.mu.Unlock()
	d.runs.Go(func() {
		defer done()
		ctx, cancel := context.WithTimeout(d.life, maxDetached)
		defer cancel()
		ctx, stop := within(ctx)
		defer stop()
		l.answer, l.err = run.Do(ctx, func(ev Event) { l.add(e, ev) })
		close(l.ended)
		d.remove(run.ref.ID, l)
	})
	return l
}

// remove forgets a run that has ended. Clients of other servers may still have to read its end.
func (d *detached) remove(conversation string, l *Live) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live[conversation] == l { // the next run may have begun
		delete(d.live, conversation)
	}
	if l.relayed.Load() && d.life.Err() == nil {
		d.over[l.id] = l
		time.AfterFunc(keepRelayed, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			delete(d.over, l.id)
		})
	}
}

// in returns the run that goes on in a conversation, nil without one.
func (d *detached) in(conversation string) *Live {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.live[conversation]
}

// Follower passes on the events of a run. See Live.Follow.
type Follower interface {
	Follow(ctx context.Context, last string, write func(id, name string, data []byte) error) error
}

// Live returns the detached run that goes on in a conversation of c's, on whichever server: core.CodeNotFound without one.
func (e *Engine) Live(ctx context.Context, c core.Caller, id string) (Follower, error) {
	ref := c.Conversation(id)
	if _, err := e.store.Conversation(ctx, ref); err != nil {
		return nil, err
	}
	if l := e.detached.in(id); l != nil {
		return l, nil
	}
	return e.joinPeer(ctx, ref)
}

// StopRun ends the run that goes on in a conversation of c's, on whichever server, and returns when the conversation is free:
// core.CodeNotFound without one.
func (e *Engine) StopRun(ctx context.Context, c core.Caller, id string) error {
	ref := c.Conversation(id)
	if _, err := e.store.Conversation(ctx, ref); err != nil {
		return err
	}
	if e.claims.isActive(id) {
		return e.claims.Interrupt(ctx, id)
	}
	return e.stopPeer(ctx, ref)
}

func errNoRun() error {
	return core.Errorf(core.CodeNotFound, "no run goes on in this conversation; its history has what was said")
}

func (l *Live) add(e *Engine, ev Event) {
	data, err := json.Marshal(ev.Data)
	if err != nil {
		e.log.Error("a chat event cannot be encoded as JSON", "event", ev.Name, "error", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, liveEvent{ev.Name, data})
	for l.size += len(data); l.size > maxLive && len(l.events) > 1; {
		l.size -= len(l.events[0].data)
		l.events = l.events[1:]
		l.first++
	}
	close(l.grown)
	l.grown = make(chan struct{})
}

// Follow passes the events after the one with an id to write, those of before first, until the run or ctx ends, or write
// fails. An id that is not one of this run's stands for its beginning; the earliest events of a run that says very much are
// not kept.
func (l *Live) Follow(ctx context.Context, last string, write func(id, name string, data []byte) error) error {
	for after := eventNumber(l.id, last); ; {
		batch, at, err := l.next(ctx, after)
		if err != nil || len(batch) == 0 {
			return err
		}
		for _, ev := range batch {
			if at++; write(eventID(l.id, at), ev.name, ev.data) != nil {
				return ctx.Err()
			}
		}
		after = at
	}
}

// eventID is the id of an event of a run.
func eventID(run string, number int) string { return run + "." + strconv.Itoa(number) }

// eventNumber is the number in the id of an event of a run, 0 when it is not one.
func eventNumber(run, id string) int {
	number, _ := strings.CutPrefix(id, run+".")
	n, _ := strconv.Atoi(number)
	return n
}

// next returns the events after the one with a number, once there are any, and the number of the one before them. There are
// none at the end of the run.
func (l *Live) next(ctx context.Context, after int) (batch []liveEvent, at int, err error) {
	for over := false; ; {
		l.mu.Lock()
		before := l.first - 1
		at = max(after, before)
		batch, grown := l.events[min(at-before, len(l.events)):], l.grown
		l.mu.Unlock()
		if len(batch) > 0 || over {
			return batch, at, nil
		}
		select {
		case <-grown:
		case <-l.ended:
			over = true // an event may have come meanwhile
		case <-ctx.Done():
			return nil, at, ctx.Err()
		}
	}
}

// Wait returns the result of the run, at its end.
func (l *Live) Wait(ctx context.Context) (Answer, error) {
	select {
	case <-l.ended:
		return l.answer, l.err
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}
