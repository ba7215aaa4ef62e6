package interact

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/link"
)

// paramsAsker answers with the params that it was asked with.
type paramsAsker struct{}

func (paramsAsker) Ask(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return json.Marshal(method + " " + string(params))
}

func TestRootsAreAskedForWithAnObjectAsParams(t *testing.T) {
	d := newDialog(newBroker(t, nil), "notes")
	for _, c := range []struct{ params, want string }{
		{``, `"roots/list {}"`},
		{`{}`, `"roots/list {}"`},
		{`{"_meta":{"a":1}}`, `"roots/list {\"_meta\":{\"a\":1}}"`},
	} {
		f := &InFlight{}
		f.Init(t.Context(), &Call{Client: NewClient("alice", false, json.RawMessage(`{"roots":{}}`)), Asker: paramsAsker{}}, time.Minute)
		got, err := d.answer(t.Context(), link.Question{Method: instance.MethodRoots, Params: json.RawMessage(c.params)}, f, []*InFlight{f})
		if err != nil || string(got) != c.want {
			t.Errorf("params %q: the client was asked %s (%v), want %s", c.params, got, err, c.want)
		}
	}
}
