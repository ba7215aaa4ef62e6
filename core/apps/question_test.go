package apps

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// memoryManager returns a manager whose only app is in memory and running, and the spec that the app was started with.
func memoryManager(t *testing.T) (*Manager, *memoryApp, instance.Spec) {
	t.Helper()
	m := &memoryApp{}
	y, _ := managerOf(t, m, newMemoryRecords(record("notes", true)))
	open(t, y)
	synctest.Wait()
	return y, m, m.specs[0]
}

// waiting is a person who answers after a delay.
type waiting struct{ takes time.Duration }

func (w waiting) Ask(ctx context.Context, _ rpc.Question) (json.RawMessage, error) {
	if !wait(ctx, w.takes) {
		return nil, ctx.Err()
	}
	return json.RawMessage(`{"action":"accept"}`), nil
}

func TestTheTimeoutOfACallPausesWhileItsClientIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, _, _ := memoryManager(t)
		call := &interact.Call{Request: link.Request{Method: "ask", Params: json.RawMessage(`{}`)}, Client: interact.NewClient("", false, canElicit), Asker: waiting{time.Hour}}
		before := time.Now()
		result, err := y.Call(t.Context(), ws, "notes", call)
		if err != nil || string(result) != `{"action":"accept"}` {
			t.Errorf("got %s (%v)", result, err)
		}
		expect(t, "time", time.Since(before), time.Hour)
	})
}

// teller is a person who sends progress before answering.
type teller struct{ waiting }

func (p teller) Ask(ctx context.Context, q rpc.Question) (json.RawMessage, error) {
	q.Notify(rpc.Notification{Method: "notifications/progress", Params: json.RawMessage(`{"progress":1}`)})
	return p.waiting.Ask(ctx, q)
}

func TestProgressOfAQuestionReachesTheApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, _, _ := memoryManager(t)
		var heard []string
		call := &interact.Call{Request: link.Request{Method: "ask", Notify: func(n rpc.Notification) { heard = append(heard, n.Method+string(n.Params)) }}, Client: interact.NewClient("", false, canElicit), Asker: teller{}}
		if _, err := y.Call(t.Context(), ws, "notes", call); err != nil {
			t.Fatal(err)
		}
		if len(heard) != 1 || heard[0] != `notifications/progress{"progress":1}` {
			t.Errorf("the app heard %q", heard)
		}
	})
}

func TestAQuestionIsCancelledWithItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, _, _ := memoryManager(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		before := time.Now()
		_, err := y.Call(ctx, ws, "notes", &interact.Call{Request: link.Request{Method: "ask"}, Client: interact.NewClient("", false, canElicit), Asker: waiting{time.Hour}})
		if err == nil {
			t.Error("it was answered")
		}
		expect(t, "time", time.Since(before), time.Minute)
	})
}

func TestTheErrorOfAClientReachesTheAppUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, _, _ := memoryManager(t)
		for name, c := range map[string]struct {
			err  error
			want rpc.Error
		}{
			"a refusal":             {&rpc.Error{Code: -1, Message: "no", Data: json.RawMessage(`7`)}, rpc.Error{Code: -1, Message: "no", Data: json.RawMessage(`7`)}},
			"an error with details": {errors.New("the wire 10.0.0.7 broke"), rpc.Error{Code: -32603, Message: "the client did not answer"}},
			"a cancelled context":   {context.Canceled, rpc.Error{Code: -32603, Message: "the client did not answer"}},
		} {
			asker := &person{answer: func(string, json.RawMessage) (json.RawMessage, error) { return nil, c.err }}
			_, err := y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "ask"}, Client: interact.NewClient("", false, canElicit), Asker: asker})
			failure, ok := errors.AsType[*rpc.Error](err)
			if !ok || failure.Code != c.want.Code || failure.Message != c.want.Message || string(failure.Data) != string(c.want.Data) {
				t.Errorf("%s: the app got %v", name, err)
			}
		}
	})
}

func TestAQuestionThatDoesNotBelongToACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, m, b := memoryManager(t)
		roots, err := b.OnRequest(t.Context(), rpc.Question{Method: instance.MethodRoots}, nil)
		if err != nil || string(roots) != `{"roots":[]}` {
			t.Errorf("roots are %s (%v)", roots, err)
		}
		for _, method := range []string{instance.MethodElicit, instance.MethodSample} {
			_, err := b.OnRequest(t.Context(), rpc.Question{Method: method}, nil)
			if failure, ok := errors.AsType[*rpc.Error](err); !ok || failure.Code != -32601 {
				t.Errorf("%s gives %v", method, err)
			}
		}
		// An app that asks for roots gets an instance for each client that declares roots, and for no others.
		rooted := interact.NewClient("rooted", false, json.RawMessage(`{"roots":{"listChanged":true}}`))
		for _, c := range []*interact.Client{interact.NewClient("plain", false, json.RawMessage(`{"x":{}}`)), rooted} {
			if _, err := y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "x", Params: json.RawMessage(`{}`)}, Client: c, Asker: saysWord("x")}); err != nil {
				t.Fatal(err)
			}
		}
		expect(t, "starts", len(m.specs), 2)
		expect(t, "the capabilities announced to the second", string(m.specs[1].ClientCapabilities), `{"roots":{"listChanged":true}}`)
		asker := &person{answer: func(string, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"roots":[{"uri":"file:///a"}]}`), nil
		}}
		if _, err := y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "x", Params: json.RawMessage(`{}`)}, Client: rooted, Asker: asker}); err != nil {
			t.Fatal(err)
		}
		roots, err = m.specs[1].OnRequest(t.Context(), rpc.Question{Method: instance.MethodRoots}, nil)
		if err != nil || string(roots) != `{"roots":[{"uri":"file:///a"}]}` {
			t.Errorf("between calls its roots are %s (%v)", roots, err)
		}
	})
}

func TestNotificationsOfOneSessionReachNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, m, b := memoryManager(t)
		var heard []string
		defer y.Listen(ws, func(x Notification) { heard = append(heard, x.Server+" to "+x.Session+": "+x.Method) })()
		alice := interact.NewClient("alice", false, json.RawMessage(`{"elicitation":{"url":{}}}`))
		params := json.RawMessage(`{"mode":"url","url":"https://a.test","elicitationId":"e1"}`)
		if _, err := y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "ask", Params: params}, Client: alice, Asker: saysWord("x")}); err != nil {
			t.Fatal(err)
		}
		say := func(b instance.Spec, method, params string) {
			b.OnNotification(rpc.Notification{Method: method, Params: json.RawMessage(params)}, nil)
		}
		say(b, "notifications/elicitation/complete", `{"elicitationId":"e1"}`)
		say(b, "notifications/elicitation/complete", `{"elicitationId":"e2"}`) // no client was sent this request
		say(b, "notifications/message", `{}`)
		for _, calls := range [][]link.Caller{
			{of("alice"), of("alice")}, {of("alice"), of("bob")}, {of("bob"), of("alice")}, {of("alice"), of("")}, {of(""), of("")}, {of("")},
		} {
			b.OnNotification(rpc.Notification{Method: "notifications/message", Params: json.RawMessage(`{}`)}, calls)
		}
		say(b, "notifications/subscriptions/acknowledged", `{}`)
		if _, err := y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "x", Params: json.RawMessage(`{}`)}, Client: alice, Asker: saysWord("x")}); err != nil {
			t.Fatal(err)
		}
		say(m.specs[1], "notifications/message", `{}`)
		synctest.Wait()
		m.set(func(m *memoryApp) { m.tools = []string{"new"} })
		m.announce()
		synctest.Wait()
		want := []string{
			"notes to alice: notifications/elicitation/complete", "notes to : notifications/message",
			"notes to alice: notifications/message", // from calls of one session
			"notes to alice: notifications/message", "notes to alice: notifications/tools/list_changed",
		}
		expect(t, "what was heard", len(heard), len(want))
		for i := range min(len(heard), len(want)) {
			expect(t, "what was heard", heard[i], want[i])
		}
	})
}

func TestAnAppThatCannotRunTwiceServesAllClientsWithOneInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, m, b := memoryManager(t)
		_, _ = b.OnRequest(t.Context(), rpc.Question{Method: instance.MethodElicit}, nil)
		m.set(func(m *memoryApp) { m.refuses = "the port is taken" })
		call := &interact.Call{Request: link.Request{Method: "ask", Params: json.RawMessage(`{}`)}, Client: interact.NewClient("alice", false, canElicit), Asker: saysWord("red")}
		for range 3 {
			if _, err := y.Call(t.Context(), ws, "notes", call); err != nil {
				t.Errorf("it returned %v", err)
			}
		}
		expect(t, "starts", len(m.started()), 2)
		m.set(func(m *memoryApp) { m.refuses = "" })
		wait(t.Context(), time.Minute+time.Second)
		if _, err := y.Call(t.Context(), ws, "notes", call); err != nil {
			t.Errorf("it returned %v", err)
		}
		expect(t, "starts after a while", len(m.started()), 3)
	})
}

// of is a call from a session; "" stands for a client without one.
type of string

func (o of) Session() string        { return string(o) }
func (of) Context() context.Context { return context.Background() }
func (of) Hold() func()             { return func() {} }

func (of) Answer(context.Context, rpc.Question, []link.Caller) (json.RawMessage, error) {
	return nil, errors.New("nobody is asked")
}

func TestASessionSeesTheListsOfItsOwnInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, m, b := memoryManager(t)
		_, _ = b.OnRequest(t.Context(), rpc.Question{Method: instance.MethodElicit}, nil)
		alice, bob := interact.NewClient("alice", false, canElicit), interact.NewClient("bob", false, canElicit)
		call := &interact.Call{Request: link.Request{Method: "ask", Params: json.RawMessage(`{}`)}, Client: alice, Asker: saysWord("red")}
		if _, err := y.Call(t.Context(), ws, "notes", call); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if y.Offer(ws, alice) != y.Offer(ws, nil) {
			t.Error("equal lists do not share one value")
		}
		m.set(func(m *memoryApp) { m.tools = []string{"new"} })
		m.announce()
		synctest.Wait()
		expect(t, "tools of the session", names(y.Offer(ws, alice).Tools), "notes__new")
		expect(t, "tools of another session", names(y.Offer(ws, bob).Tools), "")
		expect(t, "tools of all", names(y.Tools(ws)), "")
		y.EndSession("alice")
		synctest.Wait()
		expect(t, "tools after the session", names(y.Offer(ws, alice).Tools), "")
	})
}
