package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core/link/stdio"
	"github.com/ropewalk/ropewalk/core/rpc"
)

func TestTheHandshakeResultIsKeptRaw(t *testing.T) {
	l, _ := dial(t, stdio.Options{}, Options{})
	info := l.Info()
	if info.Name != "peer" || info.Version != "1.2" || info.Instructions != "be kind" || info.ProtocolVersion != "2025-11-25" {
		t.Errorf("info is %+v", info)
	}
	if want := `{"tools":{"listChanged":true},"x":{"y":1}}`; string(info.Capabilities) != want {
		t.Errorf("capabilities are %s, want %s", info.Capabilities, want)
	}
}

func TestTheHandshakeDeclaresTheCapabilitiesFromTheOptions(t *testing.T) {
	for name, c := range map[string]struct{ capabilities, want string }{
		"nothing by default":         {"", `{}`},
		"the requested capabilities": {`{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{"listChanged":true}}`, `{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			_, p := dial(t, stdio.Options{}, Options{Version: "0.9", Capabilities: json.RawMessage(c.capabilities)})
			want := `{"clientInfo":{"name":"ropewalk","version":"0.9"},"protocolVersion":"2025-11-25","capabilities":` + c.want + `}`
			var got, wanted any
			if err := errors.Join(json.Unmarshal(p.initialize.Params, &got), json.Unmarshal([]byte(want), &wanted)); err != nil {
				t.Fatal(err)
			}
			if p.initialize.Method != "initialize" || !reflect.DeepEqual(got, wanted) {
				t.Errorf("the handshake was %s %s, want %s", p.initialize.Method, p.initialize.Params, want)
			}
		})
	}
}

func TestASlowCallerLosesTheOldestNotifications(t *testing.T) {
	c := &call{wake: make(chan struct{}, 1)}
	for i := range maxQueuedNotifications + 3 {
		c.queue(rpc.Notification{Method: fmt.Sprint(i)})
	}
	if list, _ := c.takeQueued(); len(list) != maxQueuedNotifications || list[0].Method != "3" {
		t.Errorf("%d are queued, the first is %q", len(list), list[0].Method)
	}
	big := make(json.RawMessage, maxQueuedBytes/2)
	for i := range 10 {
		c.queue(rpc.Notification{Method: fmt.Sprint(i), Params: big})
	}
	if list, _ := c.takeQueued(); len(list) != 2 || list[1].Method != "9" {
		t.Errorf("%d large notifications are queued", len(list))
	}
}

func TestAResultIsReturnedByteForByte(t *testing.T) {
	l, p := dial(t, stdio.Options{}, Options{})
	for name, result := range map[string]string{
		"small":            `{"b":1,"a":1.0,"_meta":{"x":null},"unknown":"\u00e9\/"}`,
		"spaced":           `{ "a" : [ 1 , 2 ] }`,
		"null":             `null`,
		"64 KB":            `{"content":[{"type":"text","text":"` + text64K() + `"}]}`,
		"larger than 1 MB": `{"v":"` + strings.Repeat("x", 3<<20) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			done := begin(t, l, `{"name":"x"}`, nil)
			p.answer(p.read(), result)
			if got := wait(t, done); got.err != nil || string(got.result) != result {
				t.Errorf("got %.80s (%v), want %.80s", got.result, got.err, result)
			}
		})
	}
}

func TestInvalidUTF8IsRepaired(t *testing.T) {
	l, p := dial(t, stdio.Options{}, Options{})
	done := begin(t, l, `{}`, nil)
	p.answer(p.read(), "{\"a\":\"x\xffy\"}")
	if got := wait(t, done); string(got.result) != `{"a":"x`+"\uFFFD"+`y"}` {
		t.Errorf("got %q (%v)", got.result, got.err)
	}
}

func TestAnErrorFromTheAppKeepsItsData(t *testing.T) {
	l, p := dial(t, stdio.Options{}, Options{})
	done := begin(t, l, `{}`, nil)
	p.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32042,"message":"log in first","data":{"urls":["x"],"n":1.0}}}`, p.read().ID)
	failure, ok := errors.AsType[*rpc.Error](wait(t, done).err)
	if !ok || failure.Code != -32042 || failure.Message != "log in first" || string(failure.Data) != `{"urls":["x"],"n":1.0}` {
		t.Errorf("got %+v", failure)
	}
}

func TestProgressComesInWireOrderAndBeforeTheResult(t *testing.T) {
	const calls, burst = 50, 40
	l, p := dial(t, stdio.Options{}, Options{})
	late, wrong := 0, 0
	for range calls {
		var seen []string
		returned := false
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err := l.Call(t.Context(), Request{Method: "tools/call", Params: json.RawMessage(`{"_meta":{"progressToken":"mine"}}`), Notify: func(n rpc.Notification) {
				if returned {
					late++
				}
				seen = append(seen, string(n.Params))
			}})
			if err != nil {
				t.Error(err)
			}
			returned = true
		}()
		m := p.read()
		for i := range burst {
			p.progress(m, i)
		}
		p.answer(m, `{}`)
		<-done
		late += burst - len(seen)
		for i, params := range seen {
			if params != fmt.Sprintf(`{"progressToken":"mine","progress":%d}`, i) {
				wrong++
			}
		}
	}
	if late > 0 || wrong > 0 {
		t.Errorf("of %d notifications, %d were late and %d were wrong or out of order", calls*burst, late, wrong)
	}
}

func TestCallsDoNotSeeEachOthersProgress(t *testing.T) {
	l, p := dial(t, stdio.Options{}, Options{})
	notes := make(chan string, 10)
	note := func(n rpc.Notification) { notes <- string(n.Params) }
	first := begin(t, l, `{"_meta":{"progressToken":1}}`, note)
	m1 := p.read()
	second := begin(t, l, `{"_meta":{"progressToken":1}}`, nil) // the same token, from another caller
	m2 := p.read()
	third := begin(t, l, `{}`, note) // did not ask for progress
	m3 := p.read()
	p.progress(m2, 2)
	p.progress(m1, 1)
	p.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":3}}`, m3.ID)
	p.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":4}}`)
	p.answer(m2, `2`)
	p.answer(m1, `1`)
	p.answer(m3, `3`)
	for want, done := range map[string]<-chan outcome{"1": first, "2": second, "3": third} {
		if got := wait(t, done); string(got.result) != want {
			t.Errorf("got %s (%v), want %s", got.result, got.err, want)
		}
	}
	close(notes)
	for n := range notes {
		if n != `{"progressToken":1,"progress":1}` {
			t.Errorf("got %s", n)
		}
	}
}

func TestALogMessageIsDeliveredToTheOnlyCall(t *testing.T) {
	type reported struct {
		rpc.Notification
		Callers []Caller
	}
	observed := make(chan reported, 4)
	l, p := dial(t, stdio.Options{}, Options{OnNotification: func(n rpc.Notification, callers []Caller) { observed <- reported{n, callers} }})
	say := func(text string) {
		p.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":%q}}`, text)
	}
	say("for no call")
	if n := wait(t, observed); string(n.Params) != `{"data":"for no call"}` || len(n.Callers) > 0 {
		t.Errorf("observed %s of %v", n.Params, n.Callers)
	}
	mine := make(chan rpc.Notification, 4)
	first := begin(t, l, `{}`, func(n rpc.Notification) { mine <- n })
	m1 := p.read()
	say("for the first")
	if n := wait(t, mine); string(n.Params) != `{"data":"for the first"}` {
		t.Errorf("the call got %s", n.Params)
	}
	second := begin(t, l, `{}`, nil)
	m2 := p.read()
	say("for one of two")
	if n := wait(t, observed); string(n.Params) != `{"data":"for one of two"}` || len(mine) > 0 {
		t.Errorf("observed %s, the call got %d more", n.Params, len(mine))
	}
	p.answer(m1, `1`)
	p.answer(m2, `2`)
	wait(t, first)
	wait(t, second)

	var calls sync.WaitGroup
	var open []message
	for _, name := range []namedCaller{"alice", "bob"} {
		calls.Go(func() {
			if _, err := l.Call(t.Context(), Request{Method: "tools/call", Caller: name, Notify: func(n rpc.Notification) { mine <- n }}); err != nil {
				t.Error(err)
			}
		})
		open = append(open, p.read())
	}
	say("for Alice or Bob")
	if n := wait(t, observed); !reflect.DeepEqual(n.Callers, []Caller{namedCaller("alice"), namedCaller("bob")}) || len(mine) > 0 {
		t.Errorf("observed %s of %v, the calls got %d more", n.Params, n.Callers, len(mine))
	}
	for _, m := range open {
		p.answer(m, `3`)
	}
	calls.Wait()
}

func TestTheAppIsNotifiedOfACancelledCallAndItsLateResponseIsDiscarded(t *testing.T) {
	l, p := dial(t, stdio.Options{}, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := l.Call(ctx, Request{Method: "tools/call"})
		done <- err
	}()
	m := p.read()
	cancel()
	if err := wait(t, done); !errors.Is(err, context.Canceled) {
		t.Errorf("the call returned %v", err)
	}
	if c := p.read(); c.Method != "notifications/cancelled" || !strings.HasPrefix(string(c.Params), `{"requestId":`+string(m.ID)+`,`) {
		t.Errorf("the app received %s %s", c.Method, c.Params)
	}
	p.answer(m, `"late"`)
	next := begin(t, l, `{}`, nil)
	p.answer(p.read(), `"in time"`)
	if got := wait(t, next); string(got.result) != `"in time"` {
		t.Errorf("the next call got %s (%v)", got.result, got.err)
	}
	if l.discarded.Count() != 1 {
		t.Errorf("%d messages were discarded, want 1", l.discarded.Count())
	}
}

func TestPendingCallsFailWhenTheAppExits(t *testing.T) {
	l, p := dial(t, stdio.Options{}, Options{})
	answered := begin(t, l, `{}`, nil)
	m := p.read()
	lost := begin(t, l, `{}`, nil)
	p.read()
	p.answer(m, `"the last answer"`)
	p.end()
	if got := wait(t, answered); string(got.result) != `"the last answer"` {
		t.Errorf("the answered call got %s (%v)", got.result, got.err)
	}
	if got := wait(t, lost); !errors.Is(got.err, ErrClosed) {
		t.Errorf("the other call got %v", got.err)
	}
	wait(t, l.Done())
	if !errors.Is(l.Err(), ErrClosed) || !errors.Is(l.Err(), io.EOF) {
		t.Errorf("the link ended with %v", l.Err())
	}
	if _, err := l.Call(t.Context(), Request{Method: "ping"}); !errors.Is(err, ErrClosed) {
		t.Errorf("a call afterwards: %v", err)
	}
}

func TestAPanicInACallersHandlerAffectsOnlyItsCall(t *testing.T) {
	l, p := dial(t, stdio.Options{}, Options{OnListChanged: func(string) { panic("oops") }, OnNotification: func(rpc.Notification, []Caller) { panic("oops") }})
	p.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	p.send(`{"jsonrpc":"2.0","method":"notifications/other"}`)
	done := begin(t, l, `{"_meta":{"progressToken":1}}`, func(rpc.Notification) { panic("oops") })
	p.progress(p.read(), 1)
	if got := wait(t, done); got.err == nil || !strings.Contains(got.err.Error(), "oops") {
		t.Errorf("the call got %s (%v)", got.result, got.err)
	}
	if m := p.read(); m.Method != "notifications/cancelled" {
		t.Errorf("the app received %q", m.Method)
	}
	next := begin(t, l, `{}`, nil)
	p.answer(p.read(), `1`)
	if got := wait(t, next); got.err != nil {
		t.Errorf("the next call: %v", got.err)
	}
}

func TestTheNumberOfPendingCallsIsBounded(t *testing.T) {
	l, p := dial(t, stdio.Options{}, Options{MaxCalls: 2})
	first, second := begin(t, l, `{}`, nil), begin(t, l, `{}`, nil)
	m1, m2 := p.read(), p.read()
	if _, err := l.Call(t.Context(), Request{Method: "tools/call"}); !errors.Is(err, ErrBusy) {
		t.Errorf("the third call: %v", err)
	}
	p.answer(m1, `1`)
	p.answer(m2, `2`)
	wait(t, first)
	wait(t, second)
	third := begin(t, l, `{}`, nil)
	p.answer(p.read(), `3`)
	if got := wait(t, third); got.err != nil {
		t.Error(got.err)
	}
}

func TestTheConnectionOfAnAppThatStopsReadingIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, silent := io.Pipe()
		stuck, in := io.Pipe() // nothing reads from it: the first write does not return
		defer silent.Close()
		defer stuck.Close()
		conn, err := stdio.New(in, out, stdio.Options{WriteTimeout: 30 * time.Second}).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l := &Link{o: Options{MaxCalls: 10}, log: quiet(), calls: map[int64]*call{}, done: make(chan struct{}), conn: conn}
		l.life, l.stop = context.WithCancel(t.Context())
		l.nextID.Store(rpc.LastSDKID)
		newStdioConn(l, conn.(*stdio.Conn))
		began := time.Now()
		if _, err := l.Call(t.Context(), Request{Method: "tools/call"}); !errors.Is(err, stdio.ErrStalled) || !errors.Is(err, ErrClosed) {
			t.Errorf("the call got %v", err)
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("closed after %v", took)
		}
	})
}

// namedCaller is a caller that tests identify by name.
type namedCaller string

func (c namedCaller) Session() string        { return string(c) }
func (namedCaller) Context() context.Context { return context.Background() }
func (namedCaller) Hold() func()             { return func() {} }

func (namedCaller) Answer(context.Context, rpc.Question, []Caller) (json.RawMessage, error) {
	return nil, errors.New("nobody is asked")
}
