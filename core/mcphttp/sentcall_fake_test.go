package mcphttp

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
)

// Start sends a call at once, unless the fake is set to send it in Wait.
func (h *fakeNamespace) Start(ctx context.Context, c core.Caller, call tools.Call) (tools.Pending, error) {
	if h.sendsInWait {
		return &held{h, c, call}, nil
	}
	f := &sentCall{wake: call.Wake, notify: call.Notify}
	call.Notify = f.note
	go func() {
		defer f.finish()
		defer func() { f.panicked = recover() }()
		f.result, f.err = h.Call(ctx, c, call)
	}()
	return f, nil
}

// held is a call that is made by Wait.
type held struct {
	h    *fakeNamespace
	c    core.Caller
	call tools.Call
}

func (p *held) Sent() bool { return false }

func (*held) Failed() bool { return false }

func (p *held) Answered() bool { return false }

func (p *held) Wait(ctx context.Context) (json.RawMessage, error) { return p.h.Call(ctx, p.c, p.call) }

// sentCall is a call of the fakeNamespace that runs by itself, and whose notifications wait for Wait.
type sentCall struct {
	notify   func(rpc.Notification)
	result   json.RawMessage
	err      error
	panicked any

	mu       sync.Mutex
	wake     chan struct{}
	notes    []rpc.Notification
	answered bool
}

func (f *sentCall) note(n rpc.Notification) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, n)
	f.rouse()
}

func (f *sentCall) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answered = true
	f.rouse()
}

func (f *sentCall) rouse() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *sentCall) Sent() bool { return true }

func (*sentCall) Failed() bool { return false }

func (f *sentCall) Answered() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.answered
}

func (f *sentCall) Wait(context.Context) (json.RawMessage, error) {
	f.mu.Lock()
	f.wake = make(chan struct{}, 1)
	f.rouse()
	f.mu.Unlock()
	for {
		<-f.wake
		f.mu.Lock()
		notes, answered := f.notes, f.answered
		f.notes = nil
		f.mu.Unlock()
		for _, n := range notes {
			f.notify(n)
		}
		if answered && f.panicked != nil {
			panic(f.panicked)
		}
		if answered {
			return f.result, f.err
		}
	}
}
