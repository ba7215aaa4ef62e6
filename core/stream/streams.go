package stream

import (
	"context"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

// Kind determines what happens to a stream when the server shuts down.
type Kind int

const (
	// Standing streams do not end on their own (GET /v1/events, GET /mcp). Shutdown ends them.
	Standing Kind = iota
	// Response streams carry the response to one request. Shutdown lets them finish.
	Response
)

// connection returns the value of the Connection header. The connection always ends with the stream. A standing stream
// sends keep-alive, since it lasts until its reader disconnects or the server stops. A response sends close: otherwise
// the client would send its next request over a connection that is closing.
func (k Kind) connection() string {
	if k == Response {
		return "close"
	}
	return "keep-alive"
}

// Streams are the open streams of one server. Its methods are safe for concurrent use.
type Streams struct {
	log hclog.Logger

	mu       sync.Mutex
	draining bool
	open     map[*openStream]struct{}
	empty    chan struct{} // closed when draining and nothing is open: nothing opens after that
}

// openStream is one open stream.
type openStream struct {
	kind   Kind
	cancel context.CancelFunc
}

// New returns Streams without any open stream.
func New(log hclog.Logger) *Streams {
	return &Streams{log: log, open: make(map[*openStream]struct{}), empty: make(chan struct{})}
}

// Open answers c with an event stream: status 200, the headers of docs/api.md 7.1, and those set on the response so
// far. It returns immediately. When the handler has returned as well, run is called with a writer. The stream ends when
// run returns. The headers are sent with the first data, so run can first set up anything that the client may rely on
// once it sees the headers.
//
// The context passed to run ends as soon as the client has disconnected, has stalled for 10 seconds, or the stream
// must end because of Shutdown. It does not refer to c: run must not use c, or strings from it that were not copied.
// A panic in run ends the stream and is logged.
//
// On a server that keeps hijacked connections (fasthttp's KeepHijackedConns) a stream holds only its
// connection. Otherwise it also holds the buffers that the request was read with, 16 KB and more.
//
// After Drain, Open returns core.CodeUnavailable. HEAD is answered with the headers only. onEnd, if set, is called
// once: when the stream has ended, or immediately if none is opened, which is also the case for HEAD.
func (s *Streams) Open(c *fiber.Ctx, kind Kind, run func(ctx context.Context, w *Writer), onEnd ...func()) error {
	end := func() {
		for _, f := range onEnd {
			f()
		}
	}
	if s.isDraining() {
		end()
		return core.Errorf(core.CodeUnavailable, "the server is shutting down").WithRetryAfter(5 * time.Second)
	}
	head, chunked := writeHeaders(c, kind)
	fctx := c.Context()
	if fctx.IsHead() {
		end()
		return nil
	}
	fctx.HijackSetNoResponse(true)
	kept := c.App().Server().KeepHijackedConns
	fctx.Hijack(func(conn net.Conn) {
		if !kept {
			defer end()
			s.serve(conn, kind, &Writer{conn: conn, head: head, chunked: chunked}, run)
			return
		}
		conn = bare(conn)
		go func() {
			defer end()
			defer func() { _ = conn.Close() }()
			s.serve(conn, kind, &Writer{conn: conn, head: head, chunked: chunked}, run)
		}()
	})
	return nil
}

// writeHeaders sets the headers of an event stream on c. It returns them as bytes, including the status line,
// and whether the body is chunked: an HTTP/1.0 client reads it until the connection closes. A `Connection:
// close` that the handler set is kept.
func writeHeaders(c *fiber.Ctx, kind Kind) (head []byte, chunked bool) {
	fctx := c.Context()
	h := &fctx.Response.Header
	chunked = fctx.Request.Header.IsHTTP11()
	h.SetStatusCode(fiber.StatusOK)
	h.SetContentType("text/event-stream")
	h.Set(fiber.HeaderCacheControl, "no-cache")
	h.Set("X-Accel-Buffering", "no") // proxies that buffer would delay events
	if chunked {
		if string(h.Peek(fiber.HeaderConnection)) != "close" {
			h.Set(fiber.HeaderConnection, kind.connection())
		}
		h.SetContentLength(-1)
	} else {
		h.SetContentLength(-2)
	}
	return append([]byte(nil), h.Header()...), chunked
}

// serve owns the hijacked connection until it returns, when the connection is closed.
func (s *Streams) serve(conn net.Conn, kind Kind, w *Writer, run func(context.Context, *Writer)) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	st := &openStream{kind: kind, cancel: cancel}
	if !s.enter(st) {
		return
	}
	defer s.leave(st)
	limitBuffer(conn)
	w.broken = cancel
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		watch(conn)
		cancel()
	}()
	s.run(ctx, w, run)
	w.finish()
	// fasthttp may recycle conn after this: the watcher must have stopped using it.
	_ = conn.SetReadDeadline(time.Unix(1, 0))
	<-gone
}

// enter admits a stream. A stream may arrive after Drain even if its handler ran before Drain. Such a stream ends
// immediately if it is standing, and is refused if Shutdown is already over.
func (s *Streams) enter(st *openStream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining && len(s.open) == 0 {
		return false
	}
	if s.draining && st.kind == Standing {
		st.cancel()
	}
	s.open[st] = struct{}{}
	return true
}

func (s *Streams) leave(st *openStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, st)
	if s.draining && len(s.open) == 0 {
		close(s.empty)
	}
}

func (s *Streams) run(ctx context.Context, w *Writer, run func(context.Context, *Writer)) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("stream ended by a panic", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	run(ctx, w)
}

// Count returns the number of open streams.
func (s *Streams) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Drain refuses new streams and ends the standing ones without waiting. Responses continue.
func (s *Streams) Drain() { s.end(Standing) }

// Shutdown drains, then waits until every stream has ended. If ctx ends first, it ends the responses too, waits
// for them to return, and returns ctx's error.
func (s *Streams) Shutdown(ctx context.Context) error {
	s.Drain()
	select {
	case <-s.empty:
		return nil
	case <-ctx.Done():
	}
	s.end(Standing, Response)
	<-s.empty
	return ctx.Err()
}

func (s *Streams) end(kinds ...Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining && len(s.open) == 0 {
		close(s.empty)
	}
	s.draining = true
	for st := range s.open {
		if slices.Contains(kinds, st.kind) {
			st.cancel()
		}
	}
}

func (s *Streams) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}
