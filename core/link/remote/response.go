package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
)

const (
	maxErrorBody = 64 << 10
	firstRead    = 16 << 10 // the initial size of a response's buffer
)

// receive bounds and checks a response before the SDK reads it.
func (c *roundTripper) receive(r *http.Request, resp *http.Response) (*http.Response, error) {
	media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	media = strings.TrimSpace(strings.ToLower(media))
	last := &answer{status: resp.StatusCode, media: media}
	if r.Method != http.MethodDelete { // a DELETE only ends the session: its response does not explain a failure
		c.answered.Store(last)
	}
	if nonce := nonceOf(resp.Header); nonce != "" && c.authorizer != nil {
		c.nonce.Store(&nonce)
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		_ = resp.Body.Close()
		return nil, &Error{Host: c.origin.Host, Status: resp.StatusCode, Challenge: challengeOf(resp.Header),
			Reason: fmt.Sprintf("rejects the credentials (%d); check transport.auth (--bearer-env or --header)", resp.StatusCode)}
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		if err := last.readError(resp); err != nil {
			return nil, c.explain(r.Context(), r, err)
		}
	case media == "text/event-stream":
		resp.Body = &eventFilter{in: rpc.NewEventReader(paced(r.Context(), resp.Body), c.limit), source: resp.Body, discarded: &c.discarded, limit: c.limit, id: func() string { return idOf(r) }}
	case r.Method == http.MethodPost && media == "application/json":
		return c.receiveJSON(r, resp)
	default:
		resp.Body = limited{Reader: io.LimitReader(resp.Body, maxErrorBody), Closer: resp.Body}
	}
	return resp, nil
}

type limited struct {
	io.Reader
	io.Closer
}

// receiveJSON reads the response to one call. A response that is too large or not a message fails only that call. The
// SDK would end the whole session.
func (c *roundTripper) receiveJSON(r *http.Request, resp *http.Response) (*http.Response, error) {
	received := resp.Body
	defer func() { _ = received.Close() }()
	data, err := readUpTo(received, c.limit+1)
	if err != nil {
		return nil, c.explain(r.Context(), r, err)
	}
	if len(data) > 0 {
		data = messageOrError(data, c.limit, &c.discarded, func() string { return idOf(r) })
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	return resp, nil
}

// readUpTo reads to the end, or up to limit bytes. It doubles its buffer, because io.ReadAll would allocate
// five times as much.
func readUpTo(in io.Reader, limit int) ([]byte, error) {
	data := make([]byte, 0, min(limit, firstRead))
	for {
		n, err := in.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF) || err == nil && len(data) == limit:
			return data, nil
		case err != nil:
			return nil, err
		case len(data) == cap(data):
			data = append(make([]byte, 0, min(2*cap(data), limit)), data...)
		}
	}
}

// messageOrError returns data if it is exactly one message, and otherwise an error response for the call with that id.
func messageOrError(data []byte, limit int, discarded *rpc.DiscardLog, id func() string) []byte {
	reason := rpc.ErrTooLarge.Error() + fmt.Sprintf(": the limit is %d bytes", limit)
	code := CodeTooLarge
	if len(data) <= limit {
		if _, err := rpc.Scan(data); err == nil {
			return rpc.ValidUTF8(data)
		}
		reason, code = rpc.ErrMalformed.Error(), CodeMalformed
	}
	discarded.Add(reason)
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id(), code, reason)
}

// Codes of the errors that the transport substitutes for a response. Package link converts them to its own errors.
const (
	CodeTooLarge  = -32990
	CodeMalformed = -32991
)

// idOf returns the id of the request's message as JSON, or "null".
func idOf(r *http.Request) string {
	if r.GetBody == nil {
		return "null"
	}
	sent, err := r.GetBody()
	if err != nil {
		return "null"
	}
	defer func() { _ = sent.Close() }()
	data, err := io.ReadAll(sent)
	if err != nil {
		return "null"
	}
	id, err := rawjson.Find(data, "id")
	if err != nil || id.Empty() {
		return "null"
	}
	return string(id.In(data))
}
