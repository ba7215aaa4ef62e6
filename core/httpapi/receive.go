package httpapi

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
)

const (
	smallBody   = 16 << 10 // what every request may send at once, bytes
	largeBodies = 8        // requests of each lane that may be sending more than that, at a time
)

// A lane is the few places for requests that are sending a large body.
type lane chan struct{}

func newLane() lane { return make(lane, largeBodies) }

// receiver takes in the bodies of requests. It bounds what all clients together can make the server
// hold of bodies that are not complete: past smallBody bytes a request is read on only while it has
// a place. Who waits is slowed by TCP's own flow control. Strangers wait in a lane of their own, so
// that those who dawdle there keep nobody else waiting.
type receiver struct {
	known, strangers lane
	patience         time.Duration // for a place
	buffers          *sync.Pool    // of *bytes.Buffer, for bodies that are not complete
}

func newReceiver(patience time.Duration) receiver {
	return receiver{
		known: newLane(), strangers: newLane(), patience: patience,
		buffers: &sync.Pool{New: func() any { return new(bytes.Buffer) }},
	}
}

// take reads the whole body of a request into memory of its own: fasthttp.ErrBodyTooLarge past
// limit bytes, core.CodeUnavailable when no place became free. After an error the rest of the body
// is still on the connection, which must be closed. stranger is asked when the body is large.
func (r receiver) take(req *fasthttp.Request, limit int, stranger func() bool) error {
	stream := req.BodyStream()
	if stream == nil {
		return nil
	}
	length := req.Header.ContentLength() // negative when the body is chunked
	if length > limit {
		return fasthttp.ErrBodyTooLarge
	}
	if length >= 0 && length <= smallBody { // nearly every request
		body := make([]byte, length)
		if _, err := io.ReadFull(stream, body); err != nil {
			return err
		}
		req.SetBodyRaw(body)
		return nil
	}
	var body bytes.Buffer
	body.Grow(min(max(length, 512), smallBody) + bytes.MinRead) // MinRead: ReadFrom wants to see the end
	if _, err := body.ReadFrom(io.LimitReader(stream, smallBody)); err != nil {
		return err
	}
	if body.Len() == smallBody && length != smallBody {
		return r.takeLarge(req, &body, limit, stranger)
	}
	return accept(req, body.Bytes())
}

func (r receiver) takeLarge(req *fasthttp.Request, start *bytes.Buffer, limit int, stranger func() bool) error {
	l := r.known
	if stranger() {
		l = r.strangers
	}
	patience := time.NewTimer(r.patience)
	defer patience.Stop()
	select {
	case l <- struct{}{}:
		defer func() { <-l }()
	case <-patience.C:
		return core.Errorf(core.CodeUnavailable, "too many large requests are being received")
	}
	body := r.buffers.Get().(*bytes.Buffer)
	defer r.buffers.Put(body)
	body.Reset()
	body.Grow(min(limit, maxBody) + bytes.MinRead)
	_, _ = start.WriteTo(body) // memory to memory
	if _, err := body.ReadFrom(io.LimitReader(req.BodyStream(), int64(limit-body.Len()+1))); err != nil {
		return err
	}
	if body.Len() > limit {
		return fasthttp.ErrBodyTooLarge
	}
	return accept(req, bytes.Clone(body.Bytes()))
}

// accept makes body the request's, if it is all of it.
func accept(req *fasthttp.Request, body []byte) error {
	if length := req.Header.ContentLength(); length >= 0 && len(body) != length {
		return io.ErrUnexpectedEOF
	}
	req.SetBodyRaw(body)
	return nil
}

// bodyLimit is in bytes (contract part 1).
func (s *Server) bodyLimit(ctx *fasthttp.RequestCtx) int {
	if bytes.HasPrefix(ctx.URI().PathOriginal(), []byte("/v1/")) {
		return maxBody
	}
	return s.options.MaxBody
}

// receive takes in a request, or refuses it.
func (s *Server) receive(ctx *fasthttp.RequestCtx) bool {
	err := wellFormed(&ctx.Request.Header)
	if err == nil {
		err = oneHost(&ctx.Request)
	}
	if err == nil {
		err = s.receiver.take(&ctx.Request, s.bodyLimit(ctx), func() bool { return s.stranger(ctx) })
	}
	if err == nil {
		return true
	}
	if busy, ok := errors.AsType[*core.Error](err); ok {
		ctx.SetConnectionClose()
		lingerOn(ctx.Conn())
		s.fail(ctx, busy)
		return false
	}
	s.refuse(ctx, err)
	return false
}

// stranger reports whether a request proves no identity.
func (s *Server) stranger(ctx *fasthttp.RequestCtx) bool {
	h := &ctx.Request.Header
	_, err := s.access.API(s.root, bearer(string(h.Peek(fasthttp.HeaderAuthorization))), string(h.Cookie(sessionCookie)))
	return err != nil
}
