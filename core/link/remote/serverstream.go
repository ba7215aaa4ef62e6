package remote

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/time/rate"

	"github.com/ropewalk/ropewalk/core/rpc"
)

// HealthyStream is how long a stream must last for its end to be considered normal. Proxies close idle streams after
// about a minute.
const HealthyStream = 10 * time.Second

// ServerStream contains the callbacks for the stream on which a server sends messages unprompted.
type ServerStream struct {
	// Answered is called once, when the server has responded to the first request for the stream, even with an error, or
	// could not be reached.
	Answered func()
	// Receive gets the data of each event. It returns false to end the stream.
	Receive func(data []byte) bool
	// Lost is called when the server no longer knows the session.
	Lost func(error)
}

// serverStream is one stream that is kept open.
type serverStream struct {
	ServerStream
	conn   *Conn
	pace   *rate.Limiter // limits all reads together, before and after the stream is reopened
	lastID string
	opened bool // the server has opened a stream before
}

// ReadServerStream keeps open the stream on which a Streamable HTTP server sends messages unprompted (MCP 2025-11-25,
// basic/transports, "listening for messages from the server"), until ctx ends or the server responds that it offers no
// stream. On other transports it returns immediately.
func (c *Conn) ReadServerStream(ctx context.Context, to ServerStream) {
	if !c.streamable {
		to.Answered()
		return
	}
	s := &serverStream{ServerStream: to, conn: c, pace: rate.NewLimiter(pacePerSecond, max(2*c.http.limit, paceAtOnce))}
	s.Answered = sync.OnceFunc(to.Answered)
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 200*time.Millisecond, 30*time.Second
	for ctx.Err() == nil {
		began := time.Now()
		again, wait := s.open(ctx)
		if !again {
			return
		}
		if time.Since(began) > HealthyStream {
			pause.Reset()
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(wait, pause.NextBackOff())):
		}
	}
}

// open opens the stream and reads it to the end.
func (s *serverStream) open(ctx context.Context) (again bool, wait time.Duration) {
	r, err := http.NewRequestWithContext(context.WithValue(ctx, paceKey{}, s.pace), http.MethodGet, s.conn.url, nil)
	if err != nil {
		s.Answered()
		return false, 0
	}
	r.Header.Set("Accept", "text/event-stream")
	if id := s.conn.SessionID(); id != "" {
		r.Header.Set("Mcp-Session-Id", id)
	}
	if s.lastID != "" {
		r.Header.Set("Last-Event-Id", s.lastID)
	}
	resp, err := s.conn.client.Do(r)
	s.Answered()
	if err != nil {
		// Rejected credentials end only this stream; a server that is down may become reachable again.
		failed, ok := errors.AsType[*Error](err)
		return !ok || failed.Status == 0, 0
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNotFound && s.opened:
		s.Lost(ErrSessionLost)
		return false, 0
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500:
		return true, 0
	case resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream"):
		return false, 0
	}
	s.opened = true
	return true, s.read(rpc.NewEventReader(resp.Body, s.conn.http.limit+maxErrorBody))
}

func (s *serverStream) read(in *rpc.EventReader) (wait time.Duration) {
	for {
		e, err := in.Next()
		if err != nil {
			return wait
		}
		if e.HasID {
			s.lastID = e.ID
		}
		if after, ok := retryAfter(e.Retry); ok {
			wait = after
		}
		if len(e.Data) > 0 && e.IsMessage() && !s.Receive(e.Data) {
			return wait
		}
	}
}
