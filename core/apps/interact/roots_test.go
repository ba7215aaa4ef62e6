package interact

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// paramsAsker answers with the params of the question.
type paramsAsker struct{}

func (paramsAsker) Ask(_ context.Context, q rpc.Question) (json.RawMessage, error) {
	return json.Marshal(q.Method + " " + string(q.Params))
}

func TestAnAppWhoseClientHasNoRootsGetsItsGrantedPaths(t *testing.T) {
	d := newDialog(newBroker(t, nil), "notes")
	const want = `{"roots":[{"uri":"file:///srv/a%20b","name":"a b"}]}`
	if got, err := d.AnswerShared(t.Context(), rpc.Question{Method: instance.MethodRoots}, nil); err != nil || string(got) != want {
		t.Errorf("without a call: %s (%v), want %s", got, err, want)
	}
	call := &Call{Client: NewClient("alice", false, json.RawMessage(`{}`)), Asker: paramsAsker{}}
	d.begin(t.Context(), call)
	defer call.end()
	if got, err := call.Answer(t.Context(), rpc.Question{Method: instance.MethodRoots}, []link.Caller{call}); err != nil || string(got) != want {
		t.Errorf("a client without roots: %s (%v), want %s", got, err, want)
	}
}

func TestRootsAreRequestedWithAnObjectAsParams(t *testing.T) {
	d := newDialog(newBroker(t, nil), "notes")
	for _, c := range []struct{ params, want string }{
		{``, `"roots/list {}"`},
		{`{}`, `"roots/list {}"`},
		{`{"_meta":{"a":1}}`, `"roots/list {\"_meta\":{\"a\":1}}"`},
	} {
		call := &Call{Client: NewClient("alice", false, json.RawMessage(`{"roots":{}}`)), Asker: paramsAsker{}}
		d.begin(t.Context(), call)
		defer call.end()
		got, err := call.Answer(t.Context(), rpc.Question{Method: instance.MethodRoots, Params: json.RawMessage(c.params)}, []link.Caller{call})
		if err != nil || string(got) != c.want {
			t.Errorf("params %q: the client received %s (%v), want %s", c.params, got, err, c.want)
		}
	}
}
