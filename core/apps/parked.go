package apps

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

const (
	parkedState   = "ropewalk.parked." // begins the requestState of calls that are parked
	maxParked     = 256                // calls that wait for their client to come back
	maxParkedEach = 16                 // of them, calls of one owner
	parkPatience  = 10 * time.Minute   // how long one waits
	parkLeast     = time.Minute        // how long it waits at least, before another one may take its place
	invalidParams = -32602             // JSON-RPC 2.0, 5.1
)

// parking is where calls wait whose app, of the older revisions, asked something while the client
// speaks link.StatelessVersion: there the question is a result, and the client calls again with the
// answer. Meanwhile the app's call stays in flight.
type parking struct {
	state string // begins every requestState

	mu     sync.Mutex
	places map[string]*parked // by requestState
}

func newParking(state string) *parking { return &parking{state: state, places: map[string]*parked{}} }

// parked is one such call. It is an Asker: what the app asks becomes a result.
type parked struct {
	owner, server, method string
	about                 string // the tool, prompt or resource that it is a call of
	cancel                context.CancelFunc
	asked                 chan struct{} // holds one; told at each question
	done                  chan struct{} // closed when result and err are set
	result                json.RawMessage
	err                   error

	mu     sync.Mutex
	open   map[string]parkedQuestion
	count  int
	notify func(rpc.Notification) // of the request that waits; nil between two
	timer  *time.Timer
	since  time.Time // when it was parked; the parking's mutex
}

type parkedQuestion struct {
	question
	answer chan json.RawMessage // holds one
}

// parks reports whether a method's result may ask for input.
func parks(method string) bool {
	return method == "tools/call" || method == "prompts/get" || method == "resources/read"
}

// Ask implements Asker.
func (p *parked) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	q := parkedQuestion{question{method, params}, make(chan json.RawMessage, 1)}
	p.mu.Lock()
	p.count++
	name := fmt.Sprintf("q%d", p.count)
	p.open[name] = q
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.open, name)
		p.mu.Unlock()
	}()
	select {
	case p.asked <- struct{}{}:
	default:
	}
	select {
	case answer := <-q.answer:
		return answer, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// park makes a call that outlives its request, should the app ask something.
func (a *app) park(ctx context.Context, shared instance, c Call) (json.RawMessage, error) {
	if !a.slot() {
		return nil, unavailable(time.Second, "app %s is busy: %d calls are in flight", a.key.name, a.manager.o.MaxCalls)
	}
	life, left, err := a.manager.enter(context.WithoutCancel(ctx))
	if err != nil {
		<-a.calls
		return nil, err
	}
	life, cancel := context.WithCancelCause(life)
	p := &parked{
		owner: c.Owner, server: a.key.workspace + "/" + a.key.name, method: c.Method, about: about(c.Params), cancel: func() { cancel(nil) },
		asked: make(chan struct{}, 1), done: make(chan struct{}), open: map[string]parkedQuestion{}, notify: c.Notify,
	}
	k := &caller{parent: life, client: NewClient("", false, declared(c.Params)), asker: p, limit: a.manager.o.CallTimeout}
	k.start(func() { cancel(errDeadline) })
	if c.Notify != nil {
		c.Notify = k.hearing(p.tell)
	}
	go func() {
		defer left()
		defer close(p.done)
		defer func() { <-a.calls }()
		defer cancel(nil)
		defer k.end()
		conn, leave, err := a.routeApart(life, shared, c.Owner, k)
		if err != nil {
			p.err = err
			return
		}
		defer leave()
		p.result, p.err = conn.Do(life, link.Request{Method: c.Method, Params: c.Params, Notify: c.Notify, For: k})
		if p.err != nil {
			p.result, p.err = k.detour(a.callError(context.WithoutCancel(life), life, conn, c.Method, p.err))
		}
	}()
	return a.manager.parking.wait(ctx, p)
}

// routeApart picks the instance for a call that may be parked: an app that asks gets one for it alone.
func (a *app) routeApart(ctx context.Context, shared instance, owner string, k *caller) (conn instance, leave func(), err error) {
	if k.client.can&a.manager.memory.of(a.now.Load().record).asks == 0 {
		return shared, func() {}, nil
	}
	key := annexKey{app: a, session: "stateless " + owner + " " + string(k.client.capabilities)}
	x, leave, err := a.manager.annexes.enter(ctx, key, true, k)
	switch {
	case errors.Is(err, errAnnex) && ctx.Err() == nil:
		return shared, func() {}, nil
	case err != nil:
		return nil, nil, err
	}
	return x.conn, leave, nil
}

// declared is what a request of link.StatelessVersion says that its client can do.
func declared(params json.RawMessage) json.RawMessage {
	var said struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(params, &said) // who declares nothing readable is asked nothing
	return said.Meta["io.modelcontextprotocol/clientCapabilities"]
}

func (p *parked) tell(n rpc.Notification) {
	p.mu.Lock()
	notify := p.notify
	p.mu.Unlock()
	if notify != nil {
		notify(n)
	}
}

// wait waits for the call's result or its next questions, on behalf of one request.
func (y *parking) wait(ctx context.Context, p *parked) (json.RawMessage, error) {
	for {
		select {
		case <-p.done:
			return p.result, p.err
		case <-ctx.Done():
			p.cancel()
			return nil, ctx.Err()
		case <-p.asked:
			if p.asks() { // and not of a question that was answered already
				return y.leave(p)
			}
		}
	}
}

func (p *parked) asks() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open) > 0
}

// leave parks the call and gives its client the result that asks.
func (y *parking) leave(p *parked) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notify = nil
	requests := make(map[string]question, len(p.open))
	for name, q := range p.open {
		requests[name] = q.question
	}
	state := y.state + rand.Text()
	y.mu.Lock()
	defer y.mu.Unlock()
	if !y.room(p.owner) {
		p.cancel()
		return nil, core.Errorf(core.CodeUnavailable, "too many calls wait for input of their clients").WithRetryAfter(time.Minute)
	}
	y.places[state], p.since = p, time.Now()
	p.timer = time.AfterFunc(parkPatience, func() {
		if y.take(state) != nil {
			p.cancel()
		}
	})
	return json.Marshal(map[string]any{"resultType": "input_required", "inputRequests": requests, "requestState": state})
}

// room makes room for one more call of an owner. Clients need not come back: where all places are
// taken, the call that has waited longest gives way. The caller holds the lock.
func (y *parking) room(owner string) bool {
	full := y.of(owner) >= maxParkedEach
	if !full && len(y.places) < maxParked {
		return true
	}
	var oldest string
	for state, p := range y.places {
		if (!full || p.owner == owner) && (oldest == "" || p.since.Before(y.places[oldest].since)) {
			oldest = state
		}
	}
	p := y.places[oldest]
	if time.Since(p.since) < parkLeast {
		return false
	}
	delete(y.places, oldest)
	p.timer.Stop()
	p.cancel()
	return true
}

// of counts the parked calls of one owner. The caller holds the lock.
func (y *parking) of(owner string) (n int) {
	for _, p := range y.places {
		if p.owner == owner {
			n++
		}
	}
	return n
}

func (y *parking) take(state string) *parked {
	y.mu.Lock()
	defer y.mu.Unlock()
	p := y.places[state]
	delete(y.places, state)
	return p
}

// about is what a request is about: the name of a tool or a prompt, or the URI of a resource.
func about(params json.RawMessage) string {
	var said struct{ Name, URI string }
	_ = json.Unmarshal(params, &said) // what is unreadable is about nothing
	return said.Name + said.URI
}

// comeBack goes on with a parked call if c is the answer to one. Only who began it can, for the same
// app, method and name; to anyone else it does not exist.
func (a *app) comeBack(ctx context.Context, c Call) (result json.RawMessage, resumed bool, err error) {
	var said struct {
		RequestState   string                     `json:"requestState"`
		InputResponses map[string]json.RawMessage `json:"inputResponses"`
		Meta           struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if bytes.Contains(c.Params, []byte(parkedState)) {
		_ = json.Unmarshal(c.Params, &said) // what is unreadable is the app's to judge
	}
	if !strings.HasPrefix(said.RequestState, parkedState) {
		return nil, false, nil
	}
	y := a.manager.parking
	y.mu.Lock()
	p := y.places[said.RequestState]
	if p != nil && (p.owner != c.Owner || p.server != a.key.workspace+"/"+a.key.name || p.method != c.Method || p.about != about(c.Params)) {
		p = nil
	}
	if p != nil {
		delete(y.places, said.RequestState)
	}
	y.mu.Unlock()
	if p == nil {
		result, err := a.comeBackElsewhere(ctx, said.RequestState, c)
		return result, true, err
	}
	if left := p.take(said.InputResponses, readdressed(c.Notify, said.Meta.Token)); left {
		result, err := y.leave(p)
		return result, true, err
	}
	result, err = y.wait(ctx, p)
	return result, true, err
}

// readdressed passes on what an app says about a call to the request that goes on with it: the app
// names the first request's progress token, which is not this one's.
func readdressed(notify func(rpc.Notification), token json.RawMessage) func(rpc.Notification) {
	if notify == nil {
		return nil
	}
	return func(n rpc.Notification) {
		if n.Method == "notifications/progress" {
			if token == nil {
				return
			}
			n = n.WithToken(token)
		}
		notify(n)
	}
}

// take hands the answers over; left tells that questions are still open. What is no object answers
// nothing, and is asked for again.
func (p *parked) take(answers map[string]json.RawMessage, notify func(rpc.Notification)) (left bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	p.notify = notify
	for name, q := range p.open {
		answer, ok := answers[name]
		if !ok || len(answer) == 0 || answer[0] != '{' {
			left = true
			continue
		}
		delete(p.open, name)
		q.answer <- answer
	}
	return left
}
