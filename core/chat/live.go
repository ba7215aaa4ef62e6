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
	maxDetached = time.Hour // maximum duration of a detached run
	maxLive     = 8 << 20   // bytes of events kept for clients that join a run
)

// errShutdown is the cancellation cause of detached runs when their server shuts down.
var errShutdown = errors.New("the server is shutting down")

// Live is a run that continues even if its client disconnects. It keeps the run's latest events for clients that
// join.
type Live struct {
	id      string      // the run's ID
	relayed atomic.Bool // a client of another server has joined
	answer  Answer      // the result, with err; valid once ended is closed
	err     error
	ended   chan struct{}

	mu     sync.Mutex
	events []liveEvent
	first  int           // number of events[0]
	size   int           // bytes of events
	grown  chan struct{} // closed when the next event arrives
}

type liveEvent struct {
	name string
	data []byte
}

// detached contains this server's detached runs, by conversation.
type detached struct {
	life  context.Context //nolint:containedctx // ends when the engine closes
	end   context.CancelCauseFunc
	runs  sync.WaitGroup
	peers func() // stops serving other servers

	mu   sync.Mutex
	live map[string]*Live
	over map[string]*Live // ended runs, by run id, kept for a while so that other servers can read the end
}

func newDetached() *detached {
	d := &detached{live: map[string]*Live{}, over: map[string]*Live{}, peers: func() {}}
	d.life, d.end = context.WithCancelCause(context.Background())
	return d
}

// close ends all runs and waits until they are stored, or until ctx ends.
func (d *detached) close(ctx context.Context) error {
	d.end(errShutdown)
	return core.Await(ctx, func() {
		d.runs.Wait()
		d.peers() // peer servers have now received the end of each run
	})
}

// Detach starts a run that continues when its client disconnects. It ends after an hour, when the engine closes (as
// Incomplete), or when the context returned by within ends. That context must end when the person loses access. done is
// called at the end.
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
		d.remove(run.ref.ID, l) // first, so that a client that has read the end finds no active run
		close(l.ended)
	})
	return l
}

// remove drops a run that has ended. If clients of other servers joined it, its events are kept for keepRelayed so
// that they can read the end.
func (d *detached) remove(conversation string, l *Live) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live[conversation] == l { // the next run may have started
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

// in returns the active detached run in a conversation, or nil if there is none.
func (d *detached) in(conversation string) *Live {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.live[conversation]
}

// Follower delivers the events of a run. See Live.Follow.
type Follower interface {
	Follow(ctx context.Context, last string, write func(id, name string, data []byte) error) error
}

// Live returns the detached run that is active in one of c's conversations, on any server. The error is
// core.CodeNotFound if there is none.
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

// StopRun ends the run in one of c's conversations, on any server, and returns when the conversation is free. The error
// is core.CodeNotFound if there is no run.
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
	return core.Errorf(core.CodeNotFound, "no run is in progress in this conversation; its messages are in its history")
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

// Follow passes every event after the one with id last to write, past events first, until the run ends, ctx ends, or
// write fails. If last is not the id of an event of this run, Follow starts at the first event. Only the latest
// events are kept (maxLive), so the earliest ones of a very long run are skipped.
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

// eventID returns the id of an event: the run's id and the number of the event in the run.
func eventID(run string, number int) string { return run + "." + strconv.Itoa(number) }

// eventNumber returns the number in the id of one of the run's events, or 0 for any other id.
func eventNumber(run, id string) int {
	number, _ := strings.CutPrefix(id, run+".")
	n, _ := strconv.Atoi(number)
	return n
}

// next waits for events with a number above after. It returns them with at, the number of the event before the first
// of them. batch is empty at the end of the run.
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
			over = true // one more event may have arrived
		case <-ctx.Done():
			return nil, at, ctx.Err()
		}
	}
}

// Wait waits until the run ends, and returns its result.
func (l *Live) Wait(ctx context.Context) (Answer, error) {
	select {
	case <-l.ended:
		return l.answer, l.err
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}
