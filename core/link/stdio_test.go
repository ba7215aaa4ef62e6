package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
)

func TestJunkOnStandardOutputIsSkipped(t *testing.T) {
	var junk bytes.Buffer
	l, p := dial(t, FrameOptions{Junk: &junk}, Options{})
	done := begin(t, l, `{}`, nil)
	m := p.read()
	lines := []string{"Server started", "[info] listening", `{"level":"info","msg":"hello"}`, "{ not: 'json' }", "[1,2]", "\x00\x01", "", "   ", "\r", `{"jsonrpc":"2.0"`, `"text"`}
	for _, line := range lines {
		p.say("%s", line)
	}
	p.say(`{"jsonrpc":"2.0","id":%s,"result":"ok"}`+"\r", m.ID)
	if got := wait(t, done); string(got.result) != `"ok"` {
		t.Errorf("got %s (%v)", got.result, got.err)
	}
	conn := l.conn.(*stdioConn)
	if n := conn.junk.count.Load(); n != 9 {
		t.Errorf("%d junk lines were counted, want 9: empty ones do not count", n)
	}
	if !strings.HasPrefix(junk.String(), "Server started\n[info] listening\n") {
		t.Errorf("the junk went to the log as %q", junk.String())
	}
}

func TestAByteOrderMarkIsNoPartOfALine(t *testing.T) {
	l, p := dial(t, FrameOptions{}, Options{})
	done := begin(t, l, `{}`, nil)
	p.say("\ufeff"+`{"jsonrpc":"2.0","id":%s,"result":"ok"}`, p.read().ID)
	if got := wait(t, done); string(got.result) != `"ok"` {
		t.Errorf("got %s (%v)", got.result, got.err)
	}
}

func TestAnAnswerThatCannotBeReadFailsItsCall(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		answer string
		want   error
	}{
		"too long, id first":  {`{"jsonrpc":"2.0","id":%s,"result":"` + long + `"}`, ErrTooLarge},
		"too long, id last":   {`{"result":"` + long + `","jsonrpc":"2.0","id":%s}`, ErrTooLarge},
		"two results":         {`{"jsonrpc":"2.0","id":%s,"result":1,"result":2}`, ErrMalformed},
		"no JSON":             {`{"jsonrpc":"2.0","id":%s,"result":NaN}`, ErrMalformed},
		"an error of no kind": {`{"jsonrpc":"2.0","id":%s,"error":"oops"}`, ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			l, p := dial(t, FrameOptions{MaxLine: 4096}, Options{})
			done := begin(t, l, `{}`, nil)
			p.say(c.answer, p.read().ID)
			if got := wait(t, done); !errors.Is(got.err, c.want) {
				t.Errorf("got %s (%v), want %v", got.result, got.err, c.want)
			}
			next := begin(t, l, `{}`, nil)
			p.answer(p.read(), `1`)
			if got := wait(t, next); got.err != nil {
				t.Errorf("the next call: %v", got.err)
			}
		})
	}
}

func TestABatchIsTakenApart(t *testing.T) {
	l, p := dial(t, FrameOptions{}, Options{})
	first, second := begin(t, l, `{}`, nil), begin(t, l, `{}`, nil)
	m1, m2 := p.read(), p.read()
	p.say(`[{"jsonrpc":"2.0","id":%s,"result":1}, {"jsonrpc":"2.0","method":"notifications/x"} ,{"jsonrpc":"2.0","id":%s,"result":1}]`, m1.ID, m2.ID)
	for _, done := range []<-chan outcome{first, second} {
		if got := wait(t, done); string(got.result) != `1` {
			t.Errorf("got %s (%v)", got.result, got.err)
		}
	}
}

func TestAFloodOfHugeLinesNeedsLittleMemory(t *testing.T) {
	l, p := dial(t, FrameOptions{}, Options{})
	done := begin(t, l, `{}`, nil)
	m := p.read()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for range 128 {
		_, _ = p.out.Write(piece)
	}
	p.say("")
	runtime.ReadMemStats(&after)
	p.answer(m, `1`)
	if got := wait(t, done); got.err != nil {
		t.Error(got.err)
	}
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 32<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

func TestTheBundlesRequestsAreAnswered(t *testing.T) {
	cancelled := make(chan struct{})
	_, p := dial(t, FrameOptions{}, Options{Requests: map[string]RequestHandler{
		"elicitation/create": func(_ context.Context, q Question) (json.RawMessage, error) {
			return json.RawMessage(`{"action":"accept","content":` + string(q.Params) + `}`), nil
		},
		"sampling/createMessage": func(context.Context, Question) (json.RawMessage, error) {
			return nil, &rpc.Error{Code: -1, Message: "user rejected", Data: json.RawMessage(`{"why":"no"}`)}
		},
		"x/panic": func(context.Context, Question) (json.RawMessage, error) { panic("oops") },
		"x/wait": func(ctx context.Context, _ Question) (json.RawMessage, error) {
			<-ctx.Done()
			close(cancelled)
			return nil, ctx.Err()
		},
	}})
	asked := 0 // an id is the bundle's to use again only once the SDK has forgotten it, which nothing tells
	for name, c := range map[string]struct{ method, params, want string }{
		"a ping, by the SDK":               {"ping", `{}`, `{}`},
		"roots, by the SDK: none":          {"roots/list", `{}`, `{"roots":[]}`},
		"a handler's result, as it is":     {"elicitation/create", `{"b":1,"a":1.0}`, `{"action":"accept","content":{"b":1,"a":1.0}}`},
		"a handler's error, with its data": {"sampling/createMessage", `{}`, `{"code":-1,"message":"user rejected","data":{"why":"no"}}`},
		"a handler that panics":            {"x/panic", `{}`, `{"code":-32603,"message":"internal error"}`},
	} {
		t.Run(name, func(t *testing.T) {
			asked++
			p.say(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, asked, c.method, c.params)
			m := p.read()
			if got := string(m.Result) + string(m.Error); string(m.ID) != fmt.Sprint(asked) || got != c.want {
				t.Errorf("answered %s %s, want %s", m.ID, got, c.want)
			}
		})
	}
	p.say(`{"jsonrpc":"2.0","id":"w","method":"x/wait"}`)
	p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w"}}`)
	wait(t, cancelled)
	p.say(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
	if m := p.read(); string(m.ID) != `"p"` {
		t.Errorf("the cancelled request was answered: %s", m.ID)
	}
}

func TestWithoutHandlersABundleIsRefused(t *testing.T) {
	_, p := dial(t, FrameOptions{}, Options{})
	for i, method := range []string{"elicitation/create", "sampling/createMessage", "no/such"} {
		p.say(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"message":"m","requestedSchema":{"type":"object","properties":{}},"messages":[],"maxTokens":1}}`, i, method)
		if m := p.read(); m.Error == nil {
			t.Errorf("%s was answered with %s", method, m.Result)
		}
	}
}

func TestAFloodOfRequestsIsAnsweredInPieces(t *testing.T) {
	_, p := dial(t, FrameOptions{}, Options{})
	const n = 1000
	go func() {
		for i := range n {
			p.say(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i+1)
		}
	}()
	seen := map[string]bool{}
	for range n {
		seen[string(p.read().ID)] = true
	}
	if len(seen) != n {
		t.Errorf("%d of %d pings were answered", len(seen), n)
	}
}

func TestChangedListsAreTold(t *testing.T) {
	kinds := make(chan string)
	l, p := dial(t, FrameOptions{}, Options{OnListChanged: func(kind string) { kinds <- kind }})
	for _, kind := range []string{"tools", "prompts", "resources"} {
		p.say(`{"jsonrpc":"2.0","method":"notifications/%s/list_changed"}`, kind)
		if got := wait(t, kinds); got != kind {
			t.Errorf("told of %s, want %s", got, kind)
		}
	}
	for range 1000 { // while the receiver is busy with the first, the others become one
		p.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	}
	done := begin(t, l, `{}`, nil) // the reader is past the flood
	p.answer(p.read(), `1`)
	wait(t, done)
	told := 0
	for more := true; more; told++ {
		select {
		case <-kinds:
		case <-time.After(50 * time.Millisecond):
			more = false
		}
	}
	if told-1 > 3 {
		t.Errorf("told %d times of one flood", told-1)
	}
}

func TestToolsAreListedRawOverAllPages(t *testing.T) {
	l, p := dial(t, FrameOptions{}, Options{})
	answers := map[string]string{
		``:               `{"tools":[{"name":"b","x":{"z":1,"a":1.0}},{"name":"a"}],"nextCursor":"2"}`,
		`{"cursor":"2"}`: `{"tools":[ {"inputSchema":true} ]}`,
	}
	go func() {
		for range answers {
			m := p.read()
			p.answer(m, answers[string(m.Params)])
		}
	}()
	tools, err := l.List(t.Context(), core.KindTools)
	if want := `[{"name":"b","x":{"z":1,"a":1.0}} {"name":"a"} {"inputSchema":true}]`; err != nil || fmt.Sprintf("%s", tools) != want {
		t.Errorf("got %s (%v), want %s", tools, err, want)
	}
	go func() {
		for range 2 {
			p.answer(p.read(), `{"tools":[],"nextCursor":"again"}`)
		}
	}()
	if _, err := l.List(t.Context(), core.KindTools); err == nil || !strings.Contains(err.Error(), "circle") {
		t.Errorf("pages in a circle: %v", err)
	}
}

func TestAHandshakeThatFailsSaysWhy(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"junk only":            {"Usage: server [options]", "1 lines on its standard output were not MCP messages"},
		"an error":             {`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no license"}}`, "no license"},
		"an unknown revision":  {`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`, "1999-01-01"},
		"nothing and the end":  {"", "handshake"},
		"a result that is not": {`{"jsonrpc":"2.0","id":1,"result":"hello"}`, "handshake"},
	} {
		t.Run(name, func(t *testing.T) {
			in, out, p := pipes(t)
			go func() {
				p.read()
				p.say("%s", c.answer)
				p.end()
			}()
			if _, err := Open(t.Context(), Stdio(in, out, FrameOptions{}), Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
	t.Run("silence, until the context ends", func(t *testing.T) {
		in, out, _ := pipes(t)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := Open(ctx, Stdio(in, out, FrameOptions{}), Options{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestABundleMayUseTheIDOfAnAnsweredRequestAgain(t *testing.T) {
	_, p := dial(t, FrameOptions{}, Options{Requests: map[string]RequestHandler{
		"x/echo": func(_ context.Context, q Question) (json.RawMessage, error) { return q.Params, nil },
	}})
	for i := range 200 {
		p.say(`{"jsonrpc":"2.0","id":"q","method":"x/echo","params":{"n":%d}}`, i)
		if m := p.read(); string(m.Result) != fmt.Sprintf(`{"n":%d}`, i) {
			t.Fatalf("request %d was answered %s %s", i, m.Result, m.Error)
		}
	}
}
