package sse

import (
	"bytes"
	"sync/atomic"
	"time"
)

// StreamAfter is how long a call may be silent before its response starts as a stream. Clients and proxies give up on a
// response without headers, and a stream can be resumed.
const StreamAfter = 15 * time.Second

// Response is the response to one POST: the answers to its calls, preceded by the messages that the calls send while
// they run. It is plain JSON unless something must be sent before the last answer.
type Response struct {
	Queue
	Batch bool // the answers are sent as an array

	waiting  atomic.Int64 // calls without an answer
	streamed atomic.Bool  // something other than an answer must be sent
}

// NewResponse returns the response to the given number of calls.
func NewResponse(calls int, batch bool) *Response {
	r := &Response{Queue: Queue{Wake: make(chan struct{}, 1)}, Batch: batch}
	r.waiting.Store(int64(calls))
	return r
}

// Answer adds the answer to a call. The last one ends the response.
func (r *Response) Answer(text []byte) {
	r.deliver(text)
	if r.waiting.Add(-1) == 0 {
		r.Close()
	}
}

// Notify adds a message that belongs to a call.
func (r *Response) Notify(text []byte) {
	r.streamed.Store(true)
	r.Push(text)
}

// BeginStream makes the response a stream, even if only answers follow.
func (r *Response) BeginStream() {
	r.streamed.Store(true)
	r.begin()
	r.Signal()
}

// Form reports the form of the response, which is known once all calls have been answered, or something must be sent
// before that. Wake receives a token when the form may have become known. If the response is a stream, Form wakes its
// reader.
func (r *Response) Form() (known, streamed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.streamed.Load() {
		r.Signal()
		return true, true
	}
	return r.closed, false
}

// Rest waits for the end of the response and returns all of it as events.
func (r *Response) Rest() []byte {
	var all []Event
	for {
		<-r.Wake
		events, open := r.Take()
		if all = append(all, events...); !open {
			return r.frame(all)
		}
	}
}

// JSON returns the body of a response that is not a stream.
func (r *Response) JSON() []byte {
	events, _ := r.Take()
	if !r.Batch && len(events) == 1 {
		return events[0].Text
	}
	answers := make([][]byte, 0, len(events))
	for _, e := range events {
		answers = append(answers, e.Text)
	}
	return append(append([]byte{'['}, bytes.Join(answers, []byte{','})...), ']')
}
