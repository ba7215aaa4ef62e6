package intake

import (
	"bytes"
	"io"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
)

// The shares of the memory for bodies.
const (
	SmallBody   = 16 << 10 // bytes that every request may send at once
	LargeBodies = 8        // requests of each lane that may be sending more than that at a time
	ownBodies   = 2        // of those, the requests of one client

	maxWeight = 1 << 20                // bytes; a body of more counts as one of this size among those that are worked on
	workPause = 250 * time.Millisecond // per MiB of a request while others of its client are not answered
)

// Client says who sends a request, for sharing what all clients use together.
type Client struct {
	Name      string // a user id, or the address of a client that proved no identity
	Anonymous bool
}

// Reader reads the bodies of requests. It bounds what incomplete bodies can make the server hold:
// past SmallBody bytes a request is read on only while it has a place in a lane, and one client may
// take only some of the places. Requests that wait are slowed down by TCP's flow control. A client that sends
// large bodies faster than they are answered is slowed down, too.
// Anonymous requests wait in a lane of their own, so that they cannot delay authenticated ones.
type Reader struct {
	known, anonymous *lane
	patience         time.Duration // for a place
	maxPooled        int           // bytes of a pooled buffer
	buffers          *sync.Pool    // of *bytes.Buffer, for incomplete bodies
	budget           *budget
}

// NewReader returns a Reader whose requests wait for a place for patience at most. The large bodies of
// the requests in flight hold inFlight bytes at most; 0 is no bound.
func NewReader(patience time.Duration, maxPooled int, inFlight int64) *Reader {
	return &Reader{
		budget: newBudget(inFlight),
		known:  newLane(), anonymous: newLane(), patience: patience, maxPooled: maxPooled,
		buffers: &sync.Pool{New: func() any { return new(bytes.Buffer) }},
	}
}

// Receiving returns how many large bodies of authenticated and of anonymous clients are being read.
func (r *Reader) Receiving() (known, anonymous int) {
	return len(r.known.places), len(r.anonymous.places)
}

// ReadBody reads the whole body of a request into memory of its own: fasthttp.ErrBodyTooLarge past
// limit bytes, core.CodeUnavailable when no place became free. After an error the rest of the body
// is still on the connection, which must be closed. client is called when the body is large. done, which
// is nil for small bodies, must be called when the request has its response.
func (r *Reader) ReadBody(req *fasthttp.Request, limit int, client func() Client) (done func(), err error) {
	stream := req.BodyStream()
	if stream == nil && req.Header.ContentLength() > 0 {
		return nil, io.ErrUnexpectedEOF // it was left on the connection
	}
	if stream == nil {
		return nil, nil
	}
	length := req.Header.ContentLength() // negative when the body is chunked
	if length > limit {
		return nil, fasthttp.ErrBodyTooLarge
	}
	if length >= 0 && length <= SmallBody { // nearly every request
		body := make([]byte, length)
		if _, err := io.ReadFull(stream, body); err != nil {
			return nil, err
		}
		req.SetBodyRaw(body)
		return nil, nil
	}
	var body bytes.Buffer
	body.Grow(min(max(length, 512), SmallBody) + bytes.MinRead) // MinRead: ReadFrom wants to see the end
	if _, err := body.ReadFrom(io.LimitReader(stream, SmallBody)); err != nil {
		return nil, err
	}
	if body.Len() == SmallBody && length != SmallBody {
		return r.readLarge(req, &body, limit, client())
	}
	return nil, setBody(req, body.Bytes())
}

func (r *Reader) readLarge(req *fasthttp.Request, start *bytes.Buffer, limit int, client Client) (done func(), err error) {
	l := r.known
	if client.Anonymous {
		l = r.anonymous
	}
	release, err := l.acquire(client.Name, r.patience)
	if err != nil {
		return nil, err
	}
	defer release()
	take := func(n int) (done func(), err error) { return r.take(l, client.Name, n) }
	if length := req.Header.ContentLength(); length >= 0 {
		return readKnown(req, start.Bytes(), length, take)
	}
	body := r.buffers.Get().(*bytes.Buffer)
	defer r.buffers.Put(body)
	body.Reset()
	body.Grow(min(limit, r.maxPooled) + bytes.MinRead)
	_, _ = start.WriteTo(body) // memory to memory
	if _, err := body.ReadFrom(io.LimitReader(req.BodyStream(), int64(limit-body.Len()+1))); err != nil {
		return nil, err
	}
	if body.Len() > limit {
		return nil, fasthttp.ErrBodyTooLarge
	}
	if done, err = take(body.Len()); err != nil {
		return nil, err
	}
	if err := setBody(req, bytes.Clone(body.Bytes())); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// take waits for the turn of a client's large body and for its part of the budget.
func (r *Reader) take(l *lane, client string, length int) (done func(), err error) {
	answered := l.begin(client, length)
	free, err := r.budget.acquire(length, r.patience)
	if err != nil {
		answered()
		return nil, err
	}
	return func() {
		free()
		answered()
	}, nil
}

// readKnown reads the rest of a body of a known length, which is held once only.
func readKnown(req *fasthttp.Request, start []byte, length int, take func(int) (func(), error)) (done func(), err error) {
	if done, err = take(length); err != nil {
		return nil, err
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(req.BodyStream(), body[copy(body, start):]); err != nil {
		done()
		return nil, err
	}
	req.SetBodyRaw(body)
	return done, nil
}

// setBody makes body the request's, if it is complete.
func setBody(req *fasthttp.Request, body []byte) error {
	if length := req.Header.ContentLength(); length >= 0 && len(body) != length {
		return io.ErrUnexpectedEOF
	}
	req.SetBodyRaw(body)
	return nil
}

func busy() error {
	return core.Errorf(core.CodeUnavailable, "too many large requests are being received")
}
