package interact

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// taskInstance is an app that responds to calls with a task.
type taskInstance struct {
	instance.Instance
	answer func(ctx context.Context, method string) (json.RawMessage, error) // to requests about the task

	mu      sync.Mutex
	methods []string
}

func (i *taskInstance) Call(ctx context.Context, r link.Request) (json.RawMessage, error) {
	i.mu.Lock()
	i.methods = append(i.methods, r.Method)
	i.mu.Unlock()
	if r.Method == "tools/call" {
		return json.RawMessage(`{"resultType":"task","taskId":"t1","status":"working"}`), nil
	}
	return i.answer(ctx, r.Method)
}

// received reports whether the app has received a request with that method.
func (i *taskInstance) received(method string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Contains(i.methods, method)
}

// silent never responds.
func silent(ctx context.Context, _ string) (json.RawMessage, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func TestAnAppsTaskIsCancelledWithItsCallButNotWhenTheAppIsSilent(t *testing.T) {
	for _, c := range []struct {
		name      string
		follow    string // the task of an earlier call
		end       error  // ends the call; nil waits for the time limit
		cancelled bool
	}{
		{"the call is cancelled", "", context.Canceled, true},
		{"the call is cancelled when it polls again", "t1", context.Canceled, true},
		{"the server stops", "", ErrKeepTask, false},
		{"the app is silent", "", nil, false},
		{"the app is silent when it is polled again", "t1", nil, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			in := &taskInstance{answer: silent}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			call := &Call{Follow: &Follow{ID: c.follow, Changed: func(FollowedTask) {}}}
			newDialog(newBroker(t, nil), "notes").begin(ctx, call)
			defer call.end()
			if c.end != nil {
				time.AfterFunc(10*time.Second, func() { cancel(c.end) })
			}
			_, err := call.sendFollowed(in, link.Request{Method: "tools/call", Params: json.RawMessage(`{}`)})
			want := c.end
			if want == nil {
				want = ErrTimeout
			}
			expect(t, c.name+": the error", errors.Is(err, want), true)
			expect(t, c.name+": the task is cancelled", in.received("tasks/cancel"), c.cancelled)
		})
	}
}

// invalidTask is an app that responds to a call with a handle, and tasks/get with a state.
type invalidTask struct {
	taskInstance
	handle, state string
}

func (i *invalidTask) Call(_ context.Context, r link.Request) (json.RawMessage, error) {
	if r.Method == "tools/call" {
		return json.RawMessage(i.handle), nil
	}
	return json.RawMessage(i.state), nil
}

func TestAnInvalidTaskFromAnAppFailsTheCall(t *testing.T) {
	const handle, state = `{"resultType":"task","taskId":"t1","status":"working"}`, `{"resultType":"complete","taskId":"t1","status":"completed","result":{"content":[]}}`
	for _, c := range []struct{ name, handle, state string }{
		{"no id", `{"resultType":"task","status":"working"}`, state},
		{"an id that is a number", `{"resultType":"task","taskId":1,"status":"working"}`, state},
		{"a poll interval that is text", `{"resultType":"task","taskId":"t1","status":"working","pollIntervalMs":"100"}`, state},
		{"an unknown status", `{"resultType":"task","taskId":"t1","status":"paused"}`, state},
		{"no result", handle, `{"status":"completed"}`},
		{"a result that is text", handle, `{"status":"completed","result":"done"}`},
		{"a task as the result", handle, `{"status":"completed","result":{"resultType":"task","taskId":"t2","status":"working"}}`},
		{"a result that asks for input", handle, `{"status":"completed","result":{"resultType":"input_required","inputRequests":{}}}`},
		{"a failure without an error", handle, `{"status":"failed"}`},
		{"", handle, state},
	} {
		synctest.Test(t, func(t *testing.T) {
			call := &Call{Follow: &Follow{Changed: func(FollowedTask) {}}}
			newDialog(newBroker(t, nil), "notes").begin(t.Context(), call)
			defer call.end()
			result, err := call.sendFollowed(&invalidTask{handle: c.handle, state: c.state}, link.Request{Method: "tools/call", Params: json.RawMessage(`{}`)})
			if c.name == "" {
				expect(t, "the result of a valid task", string(result), `{"content":[]}`)
				return
			}
			failure, _ := errors.AsType[*rpc.Error](err)
			expect(t, c.name+": invalid", failure != nil && failure.Message == "the app sent an invalid task", true)
		})
	}
}

func TestResponsesThatDoNotReachTheAppAreKept(t *testing.T) {
	in := &taskInstance{answer: func(context.Context, string) (json.RawMessage, error) { return nil, link.ErrClosed }}
	given := make(chan map[string]json.RawMessage, 1)
	given <- map[string]json.RawMessage{"name": json.RawMessage(`{}`)}
	kept := 0
	call := &Call{Follow: &Follow{
		Changed: func(FollowedTask) {}, Responses: given, Unsent: func(responses map[string]json.RawMessage) { kept += len(responses) },
	}}
	newDialog(newBroker(t, nil), "notes").begin(t.Context(), call)
	defer call.end()
	_, err := call.sendFollowed(in, link.Request{Method: "tools/call", Params: json.RawMessage(`{}`)})
	expect(t, "the error", errors.Is(err, link.ErrClosed), true)
	expect(t, "responses that are kept", kept, 1)
	expect(t, "the task is cancelled", in.received("tasks/cancel"), false)
}
