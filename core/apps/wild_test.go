package apps

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/link/stdio"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// piped is an app behind a real link. The app consists of a few goroutines in the test process.
type piped struct {
	*link.Link
	*instance.ListChanges
}

func (p *piped) Failure() *instance.Failure   { return &instance.Failure{Reason: "it broke"} }
func (p *piped) Shutdown(time.Duration) error { return p.Close() }

// wildApps starts apps that do what the arguments of a call say.
type wildApps struct {
	manager *Manager
	running sync.WaitGroup
	awake   chan struct{} // closed when dozing apps continue to read
	dozing  chan struct{} // closed when an app starts to doze
}

func (w *wildApps) launch(ctx context.Context, b instance.Spec) (instance.Instance, error) {
	toApp, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, fromApp, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	w.running.Go(func() { w.live(toApp, fromApp) })
	l, err := link.Open(ctx, stdio.New(in, out, stdio.Options{}), link.Options{
		Name: b.Record.Name, Logger: b.Logger, MaxCalls: w.manager.o.MaxCalls + 64, Capabilities: b.ClientCapabilities, OnNotification: b.OnNotification,
		Requests: map[string]link.RequestHandler{instance.MethodElicit: b.OnRequest},
	})
	if err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	return &piped{l, instance.NewListChanges()}, nil
}

type wildMessage struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Does, Key string
		Meta      struct{ ProgressToken json.RawMessage } `json:"_meta"`
	}
}

// live runs one app until it dies or its input ends.
func (w *wildApps) live(in, out *os.File) {
	var running sync.WaitGroup
	var mu sync.Mutex
	asked := map[string]chan struct{}{}
	dead := make(chan struct{})
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintf(out, format+"\n", args...)
	}
	defer func() {
		close(dead)
		_, _ = in.Close(), out.Close()
		running.Wait()
	}()
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		var m wildMessage
		if err != nil || json.Unmarshal(line, &m) != nil {
			return
		}
		switch m.Method {
		case "initialize":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"wild","version":"1"}}}`, m.ID)
		case "tools/list":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`, m.ID)
		case "":
			mu.Lock()
			if c := asked[string(m.ID)]; c != nil {
				delete(asked, string(m.ID))
				close(c)
			}
			mu.Unlock()
		case "tools/call":
			switch m.Params.Does {
			case "die":
				return
			case "doze":
				close(w.dozing)
				<-w.awake
			}
			answered := make(chan struct{})
			mu.Lock()
			asked[`"q`+string(m.ID)+`"`] = answered
			mu.Unlock()
			running.Go(func() { wildResponse(m, say, answered, dead) })
		}
	}
}

// wildResponse does what a call says. Some notifications come before its result, and some after.
func wildResponse(m wildMessage, say func(format string, args ...any), answered, dead <-chan struct{}) {
	tell := func(n int) {
		if m.Params.Meta.ProgressToken != nil {
			say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, m.Params.Meta.ProgressToken, n)
		}
	}
	tell(1)
	pause := time.NewTimer(rand.N(3 * time.Millisecond))
	defer pause.Stop()
	switch m.Params.Does {
	case "silent":
		return
	case "ask":
		say(`{"jsonrpc":"2.0","id":"q%s","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object"}}}`, m.ID)
		select {
		case <-answered:
		case <-dead:
		}
	case "later":
		select {
		case <-pause.C:
		case <-dead:
		}
	}
	tell(2)
	say(`{"jsonrpc":"2.0","id":%s,"result":{"key":%q}}`, m.ID, m.Params.Key)
	tell(3)
}

// moody is a client that answers questions after a random delay.
type moody struct{}

func (moody) Ask(ctx context.Context, _ rpc.Question) (json.RawMessage, error) {
	pause := time.NewTimer(rand.N(30 * time.Millisecond))
	defer pause.Stop()
	select {
	case <-pause.C:
		return json.RawMessage(`{"action":"accept","content":{}}`), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// wildCall makes a call and checks that its outcome is allowed.
func wildCall(t *testing.T, y *Manager, key string) {
	does := []string{"at once", "at once", "later", "ask", "silent", "die"}[min(rand.IntN(100)/19, 5)]
	patience := 20 * time.Second // longer than the app's clock
	if rand.IntN(4) == 0 {
		patience = rand.N(100 * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	received := 0
	c := &interact.Call{Request: link.Request{Method: "tools/call", Params: json.RawMessage(fmt.Sprintf(`{"does":%q,"key":%q,"_meta":{"progressToken":%q}}`, does, key, key))}}
	c.Notify = func(n rpc.Notification) {
		var said struct {
			ProgressToken string
			Progress      int
		}
		if _ = json.Unmarshal(n.Params, &said); said.ProgressToken != key || said.Progress != received+1 {
			t.Errorf("%s %s received %s after %d", does, key, n.Params, received)
		}
		received++
	}
	if rand.IntN(2) == 0 {
		c.Asker, c.Client = moody{}, interact.NewClient([]string{"", "session-1", "session-2"}[rand.IntN(3)], false, json.RawMessage(`{"elicitation":{}}`))
	}
	before := time.Now()
	result, err := y.Call(ctx, ws, "notes", c)
	if core.CodeOf(err) == core.CodeUnavailable {
		wait(t.Context(), time.Millisecond) // the app may have been stopped: let other goroutines run
	}
	if took := time.Since(before); took > 30*time.Second {
		t.Errorf("%s %s took %v", does, key, took)
	}
	if err == nil && (string(result) != `{"key":"`+key+`"}` || received != 2) {
		t.Errorf("%s %s got %s after %d notifications", does, key, result, received)
	}
	if code := core.CodeOf(err); err != nil && ctx.Err() == nil && code != core.CodeUnavailable {
		t.Errorf("%s %s failed: %v", does, key, err)
	}
}

// open waits until the app is running.
func (w *wildApps) open(t *testing.T, silence time.Duration) {
	t.Helper()
	w.manager = New(Options{
		Home: t.TempDir(), Records: newMemoryRecords(record("notes", true)), Events: newMemoryEvents(), MaxCalls: 16,
		CallTimeout: silence, RestartWait: time.Second, Policy: &Policy{Delays: []time.Duration{0, 0, 0}, HealthyAfter: time.Nanosecond},
	})
	w.manager.start = w.launch
	open(t, w.manager)
	for state(t, w.manager, "notes") != core.StateRunning {
		wait(t.Context(), time.Millisecond)
	}
	t.Cleanup(func() {
		if err := w.manager.Close(context.Background()); err != nil {
			t.Error(err)
		}
		w.running.Wait()
	})
}

// Whatever an app and its callers do, each call ends with its own result, after its notifications, and releases its
// slot.
func TestEachCallEndsWithItsOwnResultWhateverItsAppDoes(t *testing.T) {
	w := &wildApps{}
	w.open(t, 50*time.Millisecond)
	a, err := w.manager.find(ws, "notes")
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int64
	for _, callers := range []int{2, 16} { // an app's question can be attributed only if there is a single caller
		until := time.Now().Add(700 * time.Millisecond)
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for time.Now().Before(until) {
					wildCall(t, w.manager, fmt.Sprintf("key-%d", calls.Add(1)))
				}
			})
		}
		all.Go(func() {
			for time.Now().Before(until) {
				wait(t.Context(), 100*time.Millisecond)
				_, _ = w.manager.Stop(t.Context(), ws, "notes")
				_, _ = w.manager.Start(t.Context(), ws, "notes")
			}
		})
		all.Wait()
	}
	expect(t, "slots taken at the end", a.dialog.Slots().Used(), 0)
	t.Logf("%d calls", calls.Load())
}

func TestTheTimeoutOfACallOverALinkPausesWhileItsClientIsAsked(t *testing.T) {
	w := &wildApps{}
	w.open(t, 2*time.Second)
	for does, want := range map[string]string{
		"silent": "app notes did not answer tools/call within 2s (tools.callTimeoutSeconds); the call was cancelled",
		"ask":    "",
	} {
		c := &interact.Call{Request: link.Request{Method: "tools/call", Params: json.RawMessage(`{"does":"` + does + `"}`)}, Asker: slow{}, Client: interact.NewClient("", false, json.RawMessage(`{"elicitation":{}}`))}
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		_, err := w.manager.Call(ctx, ws, "notes", c)
		cancel()
		if err != nil && core.TextOf(err) != want || err == nil && want != "" {
			t.Errorf("%s: got %v, want %q", does, err, want)
		}
	}
}

// slow is a client that takes longer to answer than an app may be silent.
type slow struct{}

func (slow) Ask(ctx context.Context, _ rpc.Question) (json.RawMessage, error) {
	wait(ctx, 4*time.Second)
	return json.RawMessage(`{"action":"accept","content":{}}`), ctx.Err()
}

// A call that is waiting for its app to read earlier ones has not been sent yet, but it still ends when its
// clock runs out or its context is cancelled.
func TestACallThatWaitsForItsAppToReadEndsAtItsTimeout(t *testing.T) {
	w := &wildApps{awake: make(chan struct{}), dozing: make(chan struct{})}
	w.open(t, 400*time.Millisecond)
	large := bytes.Repeat([]byte{'x'}, 17<<20) // two fit into the write queue; the first of them is being written
	var calls sync.WaitGroup
	for n := range 5 {
		does, pad := "doze", []byte(nil)
		if n > 0 {
			does, pad = "at once", large
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if n == 4 {
			cancel()
		}
		calls.Go(func() {
			_, err := w.manager.Call(ctx, ws, "notes", &interact.Call{Request: link.Request{Method: "tools/call", Params: fmt.Appendf(nil, `{"does":%q,"pad":"%s"}`, does, pad)}})
			if n < 4 && (err == nil || core.TextOf(err) != "app notes did not answer tools/call within 400ms (tools.callTimeoutSeconds); the call was cancelled") || n == 4 && !errors.Is(err, context.Canceled) {
				t.Errorf("call %d: %v", n, err)
			}
		})
		<-w.dozing
	}
	calls.Wait()
	close(w.awake)
	a, err := w.manager.find(ws, "notes")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "slots taken at the end", a.dialog.Slots().Used(), 0)
}
