package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link/stdio"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

func TestLinesOnStandardOutputThatAreNotMessagesAreSkipped(t *testing.T) {
	l, p := dial(t, stdio.Options{}, Options{})
	done := begin(t, l, `{}`, nil)
	m := p.read()
	lines := []string{"Server started", "[info] listening", `{"level":"info","msg":"hello"}`, "{ not: 'json' }", "[1,2]", "\x00\x01", "", "   ", "\r", `{"jsonrpc":"2.0"`, `"text"`}
	for _, line := range lines {
		p.send("%s", line)
	}
	p.send(`{"jsonrpc":"2.0","id":%s,"result":"ok"}`+"\r", m.ID)
	if got := wait(t, done); string(got.result) != `"ok"` {
		t.Errorf("got %s (%v)", got.result, got.err)
	}
	if n := l.conn.(*stdio.Conn).Discarded(); n != 9 {
		t.Errorf("%d junk lines were counted, want 9 (empty lines are not counted)", n)
	}
}

func TestAByteOrderMarkIsSkipped(t *testing.T) {
	l, p := dial(t, stdio.Options{}, Options{})
	done := begin(t, l, `{}`, nil)
	p.send("\ufeff"+`{"jsonrpc":"2.0","id":%s,"result":"ok"}`, p.read().ID)
	if got := wait(t, done); string(got.result) != `"ok"` {
		t.Errorf("got %s (%v)", got.result, got.err)
	}
}

func TestAResponseThatCannotBeReadFailsItsCall(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		answer string
		want   error
	}{
		"too long, id first":        {`{"jsonrpc":"2.0","id":%s,"result":"` + long + `"}`, ErrTooLarge},
		"too long, id last":         {`{"result":"` + long + `","jsonrpc":"2.0","id":%s}`, ErrTooLarge},
		"two results":               {`{"jsonrpc":"2.0","id":%s,"result":1,"result":2}`, ErrMalformed},
		"invalid JSON":              {`{"jsonrpc":"2.0","id":%s,"result":NaN}`, ErrMalformed},
		"an error that is a string": {`{"jsonrpc":"2.0","id":%s,"error":"oops"}`, ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			l, p := dial(t, stdio.Options{MaxLine: 4096}, Options{})
			done := begin(t, l, `{}`, nil)
			p.send(c.answer, p.read().ID)
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

func TestBatchedMessagesAreRead(t *testing.T) {
	l, p := dial(t, stdio.Options{}, Options{})
	first, second := begin(t, l, `{}`, nil), begin(t, l, `{}`, nil)
	m1, m2 := p.read(), p.read()
	p.send(`[{"jsonrpc":"2.0","id":%s,"result":1}, {"jsonrpc":"2.0","method":"notifications/x"} ,{"jsonrpc":"2.0","id":%s,"result":1}]`, m1.ID, m2.ID)
	for _, done := range []<-chan outcome{first, second} {
		if got := wait(t, done); string(got.result) != `1` {
			t.Errorf("got %s (%v)", got.result, got.err)
		}
	}
}

func TestHugeLinesUseLittleMemory(t *testing.T) {
	l, p := dial(t, stdio.Options{}, Options{})
	done := begin(t, l, `{}`, nil)
	m := p.read()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for range 128 {
		_, _ = p.out.Write(piece)
	}
	p.send("")
	runtime.ReadMemStats(&after)
	p.answer(m, `1`)
	if got := wait(t, done); got.err != nil {
		t.Error(got.err)
	}
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 32<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

func TestRequestsFromAnAppAreAnswered(t *testing.T) {
	cancelled := make(chan struct{})
	_, p := dial(t, stdio.Options{}, Options{Requests: map[string]RequestHandler{
		"elicitation/create": func(_ context.Context, q rpc.Question, _ []Caller) (json.RawMessage, error) {
			return json.RawMessage(`{"action":"accept","content":` + string(q.Params) + `}`), nil
		},
		"sampling/createMessage": func(context.Context, rpc.Question, []Caller) (json.RawMessage, error) {
			return nil, &rpc.Error{Code: -1, Message: "user rejected", Data: json.RawMessage(`{"why":"no"}`)}
		},
		"x/panic": func(context.Context, rpc.Question, []Caller) (json.RawMessage, error) { panic("oops") },
		"x/wait": func(ctx context.Context, _ rpc.Question, _ []Caller) (json.RawMessage, error) {
			<-ctx.Done()
			close(cancelled)
			return nil, ctx.Err()
		},
	}})
	asked := 0 // each request has a new id, because a test cannot observe when the SDK releases an id
	for name, c := range map[string]struct{ method, params, want string }{
		"a ping, by the SDK":               {"ping", `{}`, `{}`},
		"roots, an empty list by the SDK":  {"roots/list", `{}`, `{"roots":[]}`},
		"a handler's result, unchanged":    {"elicitation/create", `{"b":1,"a":1.0}`, `{"action":"accept","content":{"b":1,"a":1.0}}`},
		"a handler's error, with its data": {"sampling/createMessage", `{}`, `{"code":-1,"message":"user rejected","data":{"why":"no"}}`},
		"a handler that panics":            {"x/panic", `{}`, `{"code":-32603,"message":"internal error"}`},
	} {
		t.Run(name, func(t *testing.T) {
			asked++
			p.send(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, asked, c.method, c.params)
			m := p.read()
			if got := string(m.Result) + string(m.Error); string(m.ID) != fmt.Sprint(asked) || got != c.want {
				t.Errorf("answered %s %s, want %s", m.ID, got, c.want)
			}
		})
	}
	p.send(`{"jsonrpc":"2.0","id":"w","method":"x/wait"}`)
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w"}}`)
	wait(t, cancelled)
	p.send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
	if m := p.read(); string(m.ID) != `"p"` {
		t.Errorf("the cancelled request was answered: %s", m.ID)
	}
}

// 64 requests of the largest size would take a gigabyte.
func TestRequestsFromAnAppAreLimitedBySize(t *testing.T) {
	asked, release := make(chan struct{}, 8), make(chan struct{})
	l, p := dial(t, stdio.Options{}, Options{Requests: map[string]RequestHandler{
		"elicitation/create": func(context.Context, rpc.Question, []Caller) (json.RawMessage, error) {
			asked <- struct{}{}
			<-release
			return json.RawMessage(`{}`), nil
		},
	}})
	ask := func(id int) {
		p.send(`{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"message":"%s"}}`, id, strings.Repeat("m", maxRequestBytes*2/5))
	}
	for id := range 4 {
		ask(id)
	}
	p.send(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
	p.read()
	for range 2 {
		wait(t, asked)
	}
	close(release)
	for range 2 {
		p.read()
	}
	testkit.Eventually(t, "no request is kept", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.asked == 0
	})
	if len(asked) > 0 {
		t.Errorf("%d more requests were kept", len(asked))
	}
	ask(9)
	wait(t, asked)
	p.read()
}

// The link keeps each response until the app has read it, and this app reads none.
func TestRequestsFromAnAppAreLimitedUntilTheirResponsesAreRead(t *testing.T) {
	var asked atomic.Int64
	large := json.RawMessage(`{"content":"` + strings.Repeat("m", 128<<10) + `"}`) // more than a pipe holds
	_, p := dial(t, stdio.Options{}, Options{Requests: map[string]RequestHandler{
		"elicitation/create": func(context.Context, rpc.Question, []Caller) (json.RawMessage, error) {
			asked.Add(1)
			return large, nil
		},
	}})
	const times = 10 * maxRequests
	for id := range times {
		p.send(`{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{}}`, id)
	}
	p.send(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
	for string(p.read().ID) != `"ping"` { // the others are responses
	}
	if n := asked.Load(); n == 0 || n > 4*maxRequests {
		t.Errorf("%d of %d requests were answered", n, times)
	}
}

func TestRepeatedQuestionsAddOneMarkToACallsQueue(t *testing.T) {
	c := &call{wake: make(chan struct{}, 1)}
	c.queue(rpc.Notification{})
	for range 1000 {
		c.mark()
	}
	if len(c.queued) != 2 {
		t.Errorf("the queue has %d entries", len(c.queued))
	}
}

func TestAPageIsReadOnlyUpToTheLimitOfItems(t *testing.T) {
	items, _, err := readPage([]byte(`{"tools":[`+strings.Repeat("1,", 1<<20)+`1],"nextCursor":"2"}`), "tools")
	if err != nil || len(items) != maxItems+1 {
		t.Errorf("%d items, %v", len(items), err)
	}
	for _, odd := range []string{`{}`, `"x"`, `1`} {
		if _, _, err := readPage([]byte(`{"tools":`+odd+`}`), "tools"); err == nil {
			t.Errorf("%s was accepted as a list", odd)
		}
	}
}

func TestRequestsWithoutAHandlerAreRefused(t *testing.T) {
	_, p := dial(t, stdio.Options{}, Options{})
	for i, method := range []string{"elicitation/create", "sampling/createMessage", "no/such"} {
		p.send(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"message":"m","requestedSchema":{"type":"object","properties":{}},"messages":[],"maxTokens":1}}`, i, method)
		if m := p.read(); m.Error == nil {
			t.Errorf("%s was answered with %s", method, m.Result)
		}
	}
}

func TestManyRequestsFromAnAppAreAllAnswered(t *testing.T) {
	_, p := dial(t, stdio.Options{}, Options{})
	const n = 1000
	go func() {
		for i := range n {
			p.send(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i+1)
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

func TestListChangesAreReported(t *testing.T) {
	kinds := make(chan string)
	l, p := dial(t, stdio.Options{}, Options{OnListChanged: func(kind string) { kinds <- kind }})
	for _, kind := range []string{"tools", "prompts", "resources"} {
		p.send(`{"jsonrpc":"2.0","method":"notifications/%s/list_changed"}`, kind)
		if got := wait(t, kinds); got != kind {
			t.Errorf("changed: %s, want %s", got, kind)
		}
	}
	for range 1000 { // while the first is being handled, the others are combined
		p.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	}
	done := begin(t, l, `{}`, nil) // the reader has now read all of them
	p.answer(p.read(), `1`)
	wait(t, done)
	reports := 0
	for more := true; more; reports++ {
		select {
		case <-kinds:
		case <-time.After(50 * time.Millisecond):
			more = false
		}
	}
	if reports-1 > 3 {
		t.Errorf("%d reports of one series of changes", reports-1)
	}
}

func TestToolsFromAllPagesAreListedRaw(t *testing.T) {
	l, p := dial(t, stdio.Options{}, Options{})
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
	if _, err := l.List(t.Context(), core.KindTools); err == nil || !strings.Contains(err.Error(), "same cursor") {
		t.Errorf("a cursor that repeats: %v", err)
	}
}

func TestTheErrorFromAFailedHandshakeContainsTheCause(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"junk only":                 {"Usage: server [options]", "1 lines on its standard output were not MCP messages"},
		"an error":                  {`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no license"}}`, "no license"},
		"an unknown revision":       {`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`, "1999-01-01"},
		"nothing before the end":    {"", "handshake"},
		"a result that is a string": {`{"jsonrpc":"2.0","id":1,"result":"hello"}`, "handshake"},
	} {
		t.Run(name, func(t *testing.T) {
			in, out, p := pipes(t)
			go func() {
				p.read()
				p.send("%s", c.answer)
				p.end()
			}()
			if _, err := Open(t.Context(), stdio.New(in, out, stdio.Options{}), Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
	t.Run("silence, until the context ends", func(t *testing.T) {
		in, out, _ := pipes(t)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := Open(ctx, stdio.New(in, out, stdio.Options{}), Options{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestAnAppMayReuseTheIDOfAnAnsweredRequest(t *testing.T) {
	_, p := dial(t, stdio.Options{}, Options{Requests: map[string]RequestHandler{
		"x/echo": func(_ context.Context, q rpc.Question, _ []Caller) (json.RawMessage, error) { return q.Params, nil },
	}})
	for i := range 200 {
		p.send(`{"jsonrpc":"2.0","id":"q","method":"x/echo","params":{"n":%d}}`, i)
		if m := p.read(); string(m.Result) != fmt.Sprintf(`{"n":%d}`, i) {
			t.Fatalf("request %d was answered %s %s", i, m.Result, m.Error)
		}
	}
}
