package intake

import (
	"bytes"
	"io"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
)

// These limits divide the memory for bodies among requests.
const (
	SmallBody   = 16 << 10 // bytes that every request may send without waiting
	LargeBodies = 8        // requests per lane that may send more than that at the same time
	ownBodies   = 2        // how many of these requests may come from one client

	maxWeight = 1 << 20                // bytes; a larger body counts as this size among the bodies being processed
	workPause = 250 * time.Millisecond // longest wait, per MiB of a body, until the same client's other requests have been answered
)

// Client identifies the sender of a request, for dividing shared resources among clients.
type Client struct {
	Name      string // a user ID, or the address of an anonymous client
	Anonymous bool
}

// Reader reads the bodies of requests and limits how much memory incomplete bodies can use. After its first SmallBody
// bytes, a body is read only once its request has a place in a lane, and each client can have only some of the places.
// TCP flow control slows down requests that wait. It also slows down a client that sends large bodies faster than it
// gets responses. Anonymous requests wait in a separate lane, so that they cannot delay authenticated ones.
type Reader struct {
	known, anonymous *lane
	patience         time.Duration // the longest wait for a place
	maxPooled        int           // largest size of a pooled buffer, in bytes
	buffers          *sync.Pool    // *bytes.Buffer for incomplete bodies
	budget           *budget
}

// NewReader returns a Reader whose requests wait at most patience for a place. The large bodies of in-flight requests
// use at most inFlight bytes in total, and those of one client at most a quarter of that. An inFlight of 0 means no
// limit.
func NewReader(patience time.Duration, maxPooled int, inFlight int64) *Reader {
	return &Reader{
		budget: newBudget(inFlight),
		known:  newLane(inFlight / 4), anonymous: newLane(inFlight / 4), patience: patience, maxPooled: maxPooled,
		buffers: &sync.Pool{New: func() any { return new(bytes.Buffer) }},
	}
}

// Receiving returns how many large bodies are being read from authenticated and from anonymous clients.
func (r *Reader) Receiving() (known, anonymous int) {
	return len(r.known.places), len(r.anonymous.places)
}

// ReadBody reads the whole body of a request into memory of its own. It returns fasthttp.ErrBodyTooLarge for a body of
// more than limit bytes, and core.CodeUnavailable if no place became free. After an error, the rest of the body is
// still on the connection, which must be closed. ReadBody calls client only for a large body. done is nil for small
// bodies; for others it must be called once the request has been answered.
func (r *Reader) ReadBody(req *fasthttp.Request, limit int, client func() Client) (done func(), err error) {
	stream := req.BodyStream()
	if stream == nil && req.Header.ContentLength() > 0 {
		return nil, io.ErrUnexpectedEOF // the rest of the body is still on the connection
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
	body.Grow(min(max(length, 512), SmallBody) + bytes.MinRead) // ReadFrom needs MinRead bytes of space to detect the end
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
	_, _ = start.WriteTo(body) // cannot fail: memory to memory
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

// take waits until the client's other large bodies leave room for this one, and then for its share of the budget.
func (r *Reader) take(l *lane, client string, length int) (done func(), err error) {
	own, err := l.keep(client, length, r.patience)
	if err != nil {
		return nil, err
	}
	answered := l.begin(client, length)
	free, err := r.budget.acquire(length, r.patience)
	if err != nil {
		answered()
		own()
		return nil, err
	}
	return func() {
		free()
		answered()
		own()
	}, nil
}

// readKnown reads the rest of a body of known length. It keeps only one copy in memory.
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

// setBody sets the body of the request. It returns io.ErrUnexpectedEOF if body is incomplete.
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
