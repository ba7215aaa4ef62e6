package mcphttp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/link/stdio"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
)

// wild is a fakeNamespace with one app behind a real link. The app exits now and then, and the next call restarts it.
type wild struct {
	*fakeNamespace
	t       *testing.T
	bundles sync.WaitGroup

	mu   sync.Mutex
	link *link.Link
}

func newWild(t *testing.T) *wild { return &wild{fakeNamespace: newFakeNamespace(), t: t} }

// conn returns the link to the running app, starting one if necessary.
func (w *wild) conn(ctx context.Context) (*link.Link, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.link != nil && w.link.Err() == nil {
		return w.link, nil
	}
	w.hangUp()
	toBundle, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, fromBundle, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	w.bundles.Go(func() { newBeast(w.t, fromBundle).live(toBundle) })
	w.link, err = link.Open(ctx, stdio.New(in, out, stdio.Options{}), link.Options{
		Capabilities: json.RawMessage(`{"elicitation":{}}`),
		Requests: map[string]link.RequestHandler{"elicitation/create": func(ctx context.Context, q rpc.Question, callers []link.Caller) (json.RawMessage, error) {
			if len(callers) == 0 {
				return nil, &rpc.Error{Code: -32601, Message: "nobody calls"}
			}
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond) // its client may disconnect
			defer cancel()
			return callers[rand.IntN(len(callers))].Answer(ctx, q, callers)
		}},
	})
	return w.link, err
}

func (w *wild) hangUp() {
	if w.link != nil {
		_ = w.link.Close()
		w.link = nil
	}
}

// close stops the app and waits until it is completely gone.
func (w *wild) close() {
	w.mu.Lock()
	w.hangUp()
	w.mu.Unlock()
	w.bundles.Wait()
}

func (w *wild) request(call tools.Call) link.Request {
	params := fmt.Sprintf(`{"name":"wild","arguments":%s`, call.Arguments)
	if call.Meta != nil {
		params += `,"_meta":` + string(call.Meta)
	}
	r := link.Request{Method: "tools/call", Params: json.RawMessage(params + "}"), Notify: call.Notify}
	if call.Asker != nil {
		r.Caller = wildCaller{call.Asker}
	}
	return r
}

// wildCaller is a call whose client answers questions.
type wildCaller struct{ interact.Asker }

func (wildCaller) Session() string          { return "" }
func (wildCaller) Context() context.Context { return context.Background() }
func (wildCaller) Hold() func()             { return func() {} }

func (c wildCaller) Answer(ctx context.Context, q rpc.Question, _ []link.Caller) (json.RawMessage, error) {
	return c.Ask(ctx, q)
}

func (w *wild) Call(ctx context.Context, _ core.Caller, call tools.Call) (json.RawMessage, bool, error) {
	l, err := w.conn(context.WithoutCancel(ctx))
	if err != nil {
		return nil, false, err
	}
	raw, err := l.Call(ctx, w.request(call))
	return raw, false, err
}

// Calls make the wild app behave in one of these ways.
const (
	wildAtOnce  = "at once"
	wildLater   = "later"
	wildAsks    = "asks"
	wildFails   = "fails"
	wildTwice   = "answers twice and sends more after that"
	wildSilent  = "never answers"
	wildDies    = "dies"
	wildDawdles = "reads nothing for a while"
)

func wilds() []string {
	return []string{wildAtOnce, wildAtOnce, wildLater, wildLater, wildAsks, wildFails, wildTwice, wildSilent, wildDawdles}
}

// wildArgs contains the arguments of a call to a wild app.
type wildArgs struct {
	Key   string `json:"key"`
	Does  string `json:"does"`
	Steps int    `json:"steps"` // number of progress notifications
	Pad   string `json:"pad"`
}

// beast is the process of a wild app, which behaves at random.
type beast struct {
	t       *testing.T
	out     io.WriteCloser
	dead    chan struct{}
	running sync.WaitGroup

	mu     sync.Mutex
	asked  int
	awaits map[string]chan struct{} // by ID; closed when the question is answered
	calls  map[string]chan struct{} // by ID; closed when the call is cancelled
}

func newBeast(t *testing.T, out io.WriteCloser) *beast {
	return &beast{t: t, out: out, dead: make(chan struct{}), awaits: map[string]chan struct{}{}, calls: map[string]chan struct{}{}}
}

func (b *beast) say(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = fmt.Fprintf(b.out, format+"\n", args...)
}

type wildMessage struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Arguments wildArgs
		RequestID json.RawMessage
		Meta      struct{ ProgressToken json.RawMessage } `json:"_meta"`
	}
}

// live reads and answers requests until the link is closed or a request stops the app.
func (b *beast) live(in io.ReadCloser) {
	defer func() {
		_, _ = in.Close(), b.out.Close()
		b.running.Wait()
	}()
	stop := sync.OnceFunc(func() { close(b.dead) })
	defer stop()
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		var m wildMessage
		if err != nil {
			return
		}
		if err := json.Unmarshal(line, &m); err != nil {
			b.t.Errorf("the app was sent %.100q: %v", line, err)
			return
		}
		switch m.Method {
		case "initialize":
			b.say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"wild","version":"1"}}}`, m.ID)
		case "":
			b.settle(b.awaits, string(m.ID))
		case "notifications/cancelled":
			b.settle(b.calls, string(m.Params.RequestID))
		case "tools/call":
			if m.Params.Arguments.Does == wildDies {
				return
			}
			if m.Params.Arguments.Does == wildDawdles {
				b.dawdle(10 * time.Millisecond)
			}
			cancelled := b.expect(b.calls, string(m.ID))
			b.running.Go(func() { b.answer(m, cancelled) })
		}
	}
}

func (b *beast) settle(all map[string]chan struct{}, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := all[id]; c != nil {
		delete(all, id)
		close(c)
	}
}

func (b *beast) expect(all map[string]chan struct{}, id string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := make(chan struct{})
	all[id] = c
	return c
}

func (b *beast) dawdle(most time.Duration) {
	rest := time.NewTimer(rand.N(most))
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-b.dead:
	}
}

func (b *beast) answer(m wildMessage, cancelled <-chan struct{}) {
	args := m.Params.Arguments
	b.progress(m, 1, args.Steps/2)
	switch args.Does {
	case wildLater:
		b.dawdle(3 * time.Millisecond)
	case wildAsks:
		b.ask(cancelled)
	case wildSilent:
		select {
		case <-cancelled:
		case <-b.dead:
		}
		return
	}
	b.progress(m, args.Steps/2+1, args.Steps)
	if args.Does == wildFails {
		b.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32042,"message":%q}}`, m.ID, args.Key)
		return
	}
	response := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"key":%q,"pad":%d}}`, m.ID, args.Key, len(args.Pad))
	b.say("%s", response)
	if args.Does == wildTwice {
		b.progress(m, args.Steps+1, args.Steps+3)
		b.say("%s", strings.Replace(response, args.Key, "the second answer", 1))
	}
}

func (b *beast) progress(m wildMessage, from, to int) {
	for n := from; n <= to && m.Params.Meta.ProgressToken != nil; n++ {
		b.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, m.Params.Meta.ProgressToken, n)
	}
}

func (b *beast) ask(cancelled <-chan struct{}) {
	b.mu.Lock()
	b.asked++
	id := fmt.Sprintf(`"q%d"`, b.asked)
	b.mu.Unlock()
	answered := b.expect(b.awaits, id)
	b.say(`{"jsonrpc":"2.0","id":%s,"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object"}}}`, id)
	select {
	case <-answered:
	case <-cancelled:
	case <-b.dead:
	}
}
