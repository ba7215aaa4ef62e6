package link

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// healthyStream is how long a stream must have lasted for its end to count as ordinary: proxies cut
// idle streams after a minute or so.
const healthyStream = 10 * time.Second

var errSessionGone = errors.New("the remote server no longer knows the session")

// listener keeps the stream open on which a Streamable HTTP server sends by itself (MCP
// 2025-11-25, basic/transports, "listening for messages from the server").
type listener struct {
	l      *Link
	tap    *messageTap
	conn   *remoteConn
	lastID string
	opened bool // the server has given a stream before
}

// run listens until the link is done or the server says that it offers no stream.
func (s *listener) run(ctx context.Context) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 200*time.Millisecond, 30*time.Second
	for ctx.Err() == nil {
		began := time.Now()
		again, wait := s.once(ctx)
		if !again {
			return
		}
		if time.Since(began) > healthyStream {
			pause.Reset()
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(wait, pause.NextBackOff())):
		}
	}
}

// once opens the stream and reads it to its end.
func (s *listener) once(ctx context.Context) (again bool, wait time.Duration) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.conn.url, nil)
	if err != nil {
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
	if err != nil {
		// Refused credentials concern this stream only; a server that is down may come back.
		remote, ok := errors.AsType[*RemoteError](err)
		return !ok || remote.Status == 0, 0
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNotFound && s.opened:
		s.l.drop(errSessionGone)
		return false, 0
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500:
		return true, 0
	case resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream"):
		return false, 0
	}
	s.opened = true
	return true, s.read(newEvents(resp.Body, s.conn.courier.limit+maxErrorBody)) //nolint:contextcheck // what arrives lives as long as the link
}

func (s *listener) read(in *events) (wait time.Duration) {
	for {
		e, err := in.next()
		if err != nil {
			return wait
		}
		if e.hasID {
			s.lastID = e.id
		}
		if millis, err := strconv.ParseInt(e.retry, 10, 32); err == nil {
			wait = min(time.Duration(millis)*time.Millisecond, time.Minute)
		}
		if len(e.data) > 0 && e.message() && !s.take(e.data) {
			return wait
		}
	}
}

// take routes one message; false when the link is done.
func (s *listener) take(data []byte) bool {
	e, err := scanEnvelope(data)
	if err != nil || s.l.route(&e, true) {
		return true
	}
	msg, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return true
	}
	return s.tap.give(msg)
}

var sessionMention = regexp.MustCompile(` ?\(session ID: [^)]*\)`)

// scrub takes out of an error what must not be shown: URLs with their query, session ids.
func scrub(err error) error {
	if remote, ok := errors.AsType[*RemoteError](err); ok {
		return remote
	}
	if errors.Is(err, mcp.ErrSessionMissing) {
		return errSessionGone
	}
	if at, ok := errors.AsType[*url.Error](err); ok {
		return at.Err
	}
	if clean := sessionMention.ReplaceAllString(err.Error(), ""); clean != err.Error() {
		return errors.New(clean)
	}
	return err
}
