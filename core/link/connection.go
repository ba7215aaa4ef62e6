package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/core/link/stdio"
	"github.com/ropewalk/ropewalk/core/rpc"
)

const (
	notifyTimeout = 5 * time.Second // for sending a notification: a cancellation, or progress on a question
	drainTime     = time.Second     // for reading the rest of a call's stream, so that its connection can be reused
)

// interceptedTransport is a transport whose connection belongs to a link. The SDK's session reads through it and
// receives only messages that the link does not handle.
type interceptedTransport struct {
	link      *Link
	transport mcp.Transport
}

// Connect implements mcp.Transport.
func (t interceptedTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := t.transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.link.conn = conn
	if lines, ok := conn.(*stdio.Conn); ok {
		return newStdioConn(t.link, lines), nil //nolint:contextcheck // ctx is the handshake's; the connection lives as long as the link
	}
	return newMessageConn(t.link, conn), nil //nolint:contextcheck // ctx is the handshake's; the connection lives as long as the link
}

// sdkSide supplies the SDK's session with the messages that the link does not handle.
type sdkSide struct {
	link  *Link
	toSDK chan jsonrpc.Message
	limit requestLimit
}

func newSDKSide(l *Link) sdkSide {
	return sdkSide{link: l, toSDK: make(chan jsonrpc.Message), limit: requestLimit{pending: new(atomic.Int64), answered: make(chan struct{}, 1)}}
}

// passToSDK passes a message to the SDK's reader. It returns false if the link is closed.
func (s sdkSide) passToSDK(msg jsonrpc.Message) bool {
	s.limit.acquire(msg, s.link.done)
	select {
	case s.toSDK <- msg:
		return true
	case <-s.link.done:
		return false
	}
}

// Read implements mcp.Connection.
func (s sdkSide) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-s.toSDK:
		return msg, nil
	case <-s.link.done:
		return nil, s.link.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// stdioConn is the SDK's side of a connection over standard streams. It receives the app's requests and the responses
// to the SDK's own calls.
type stdioConn struct {
	*stdio.Conn
	sdkSide
}

func newStdioConn(l *Link, conn *stdio.Conn) *stdioConn {
	c := &stdioConn{Conn: conn, sdkSide: newSDKSide(l)}
	l.out = c
	go c.readAll()
	return c
}

// readAll is the only reader of the connection.
func (c *stdioConn) readAll() {
	for {
		f, err := c.Next()
		if err != nil {
			c.link.fail(err)
			return
		}
		if f.Err != nil {
			if p := c.link.remove(f.Envelope.Number); p != nil {
				p.finish(nil, f.Err)
			}
			continue
		}
		if c.link.dispatch(&f.Envelope, f.Owned) {
			continue
		}
		msg, err := jsonrpc.DecodeMessage(f.Data)
		if err != nil {
			c.Discard("a message that the MCP SDK rejects")
			continue
		}
		if !c.passToSDK(msg) {
			return
		}
	}
}

// Read implements mcp.Connection.
func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) { return c.sdkSide.Read(ctx) }

// Write implements mcp.Connection.
func (c *stdioConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	defer c.limit.release(msg)
	c.link.watchDiscovery(msg, func(id jsonrpc.ID) {
		c.passToSDK(&jsonrpc.Response{ID: id, Error: errNoDiscovery})
	})
	return c.Conn.Write(ctx, msg)
}

// send implements sender.
func (c *stdioConn) send(ctx context.Context, p *call, r rpc.Request) error {
	return c.Send(ctx, p.id, r)
}

// sendCancelled implements sender.
func (c *stdioConn) sendCancelled(_ context.Context, sender string, id int64, reason string) {
	c.SendCancelled(sender, id, reason)
}

// messageConn connects the SDK's session to a connection that exchanges decoded messages, such as one to a
// remote server, and sends the link's calls over it.
type messageConn struct {
	sdkSide
	conn   mcp.Connection
	ended  context.Context
	finish context.CancelFunc
}

func newMessageConn(l *Link, conn mcp.Connection) *messageConn {
	c := &messageConn{conn: conn, sdkSide: newSDKSide(l)}
	c.ended, c.finish = context.WithCancel(context.Background())
	l.out = c
	go c.readAll()
	return c
}

// readAll is the only reader of the connection.
func (c *messageConn) readAll() {
	defer c.finish()
	for {
		msg, err := c.conn.Read(c.ended)
		if err != nil {
			c.link.fail(err)
			return
		}
		e := envelopeOf(msg)
		if c.link.dispatch(&e, true) {
			continue
		}
		if !c.passToSDK(msg) {
			return
		}
	}
}

// receive handles one message from a stream that the server opened. It returns false if the link is closed.
func (c *messageConn) receive(data []byte) bool {
	e, err := rpc.Scan(data)
	if err != nil || c.link.dispatch(&e, true) {
		return true
	}
	msg, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return true
	}
	return c.passToSDK(msg)
}

// Write implements mcp.Connection.
func (c *messageConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	defer c.limit.release(msg)
	c.link.watchDiscovery(msg, func(jsonrpc.ID) { c.link.giveUp(errNoDiscovery) }) // the write may wait for the response
	err := c.conn.Write(ctx, msg)
	c.link.discovery.noteRefusal(msg, err)
	return err
}

// Close implements mcp.Connection.
func (c *messageConn) Close() error {
	c.link.fail(errors.New("closed"))
	c.finish()
	return c.conn.Close()
}

// SessionID implements mcp.Connection.
func (c *messageConn) SessionID() string { return c.conn.SessionID() }

// send implements sender. Over HTTP a write lasts until the response begins, so it gets its own goroutine. The caller's
// context can cancel the exchange only until the call has finished. After that, the rest of the stream is read for up
// to drainTime.
func (c *messageConn) send(caller context.Context, p *call, r rpc.Request) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(remote.WithHeader(caller, r.Header)))
	stopWatching := context.AfterFunc(caller, cancel)
	p.stop = func() {
		if stopWatching() && caller.Err() == nil {
			time.AfterFunc(drainTime, cancel)
		} else {
			cancel()
		}
	}
	msg := &jsonrpc.Request{ID: sdkID(&rpc.Envelope{IDKind: rpc.IDNumber, Number: p.id}), Method: r.Method}
	if r.HasParams() {
		msg.Params = r.AppendParams(nil, p.id)
	}
	go func() {
		err := c.conn.Write(ctx, msg)
		switch {
		case err == nil:
		case caller.Err() != nil: // the caller ended the exchange, so the server must be notified
			if p.finish(nil, context.Cause(caller)) {
				c.sendCancelled(ctx, p.sender, p.id, context.Cause(caller).Error())
			}
		default:
			c.link.failCall(p, err)
		}
	}()
	return nil
}

// sendCancelled implements sender.
func (c *messageConn) sendCancelled(ctx context.Context, _ string, id int64, reason string) {
	msg := &jsonrpc.Request{Method: "notifications/cancelled", Params: fmt.Appendf(nil, `{"requestId":%d,"reason":%q}`, id, reason)}
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTimeout)
		defer cancel()
		if err := c.conn.Write(ctx, msg); err != nil {
			c.link.log.Debug("could not send a cancellation", "error", remote.SafeError(err))
		}
	}()
}

// failCall finishes a call that could not be sent, or to which the server responded with an HTTP error. If the server
// cannot be reached at all, the link is closed as well.
func (l *Link) failCall(c *call, err error) {
	failed, ok := errors.AsType[*remote.Error](err)
	if ok && failed.Down || errors.Is(err, mcp.ErrSessionMissing) {
		l.drop(err)
		c.finish(nil, l.Err())
		return
	}
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && !isSDKRejection(wire) {
		c.finish(nil, &rpc.Error{Code: int(wire.Code), Message: wire.Message, Data: wire.Data})
		return
	}
	c.finish(nil, remote.SafeError(err))
}

// isSDKRejection recognizes the error that the SDK wraps around a failure to send. The SDK does not export it.
func isSDKRejection(e *jsonrpc.Error) bool {
	return e.Code == -32005 && strings.HasPrefix(e.Message, "rejected by")
}

// requestLimit pauses the reader while the SDK still has to answer maxRequests requests from the app, because the SDK's
// own queue is unbounded.
type requestLimit struct {
	pending  *atomic.Int64
	answered chan struct{} // capacity 1; signaled after each response
}

// acquire waits for a free slot if msg is a request.
func (r requestLimit) acquire(msg jsonrpc.Message, done <-chan struct{}) {
	if request, ok := msg.(*jsonrpc.Request); !ok || !request.IsCall() {
		return
	}
	for r.pending.Add(1) > maxRequests {
		r.pending.Add(-1)
		select {
		case <-r.answered:
		case <-done:
			return
		}
	}
}

// release frees a slot if msg is a response.
func (r requestLimit) release(msg jsonrpc.Message) {
	if _, ok := msg.(*jsonrpc.Response); !ok {
		return
	}
	r.pending.Add(-1)
	select {
	case r.answered <- struct{}{}:
	default:
	}
}

// sdkID returns the id of a message as the SDK's type.
func sdkID(e *rpc.Envelope) (id jsonrpc.ID) {
	switch e.IDKind {
	case rpc.IDNumber:
		id, _ = jsonrpc.MakeID(float64(e.Number))
	case rpc.IDText:
		id, _ = jsonrpc.MakeID(e.Text)
	case rpc.IDAbsent, rpc.IDNull:
	}
	return id
}

// envelopeOf returns the Envelope for a message that the SDK decoded.
func envelopeOf(msg jsonrpc.Message) (e rpc.Envelope) {
	var id jsonrpc.ID
	switch msg := msg.(type) {
	case *jsonrpc.Request:
		id, e.Method, e.Params = msg.ID, msg.Method, msg.Params
	case *jsonrpc.Response:
		id, e.Result = msg.ID, msg.Result
		if msg.Error != nil {
			e.Error = errorObject(msg.Error)
		}
	}
	switch raw := id.Raw().(type) {
	case int64:
		e.IDKind, e.Number = rpc.IDNumber, raw
	case string:
		e.IDKind, e.Text = rpc.IDText, raw
	}
	return e
}

func errorObject(err error) []byte {
	known := &rpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
		known = &rpc.Error{Code: int(wire.Code), Message: wire.Message, Data: wire.Data}
	}
	raw, err := json.Marshal(known)
	if err != nil { // happens only for data that is not JSON, which the SDK cannot have decoded
		raw = []byte(`{"code":-32603,"message":"unreadable error"}`)
	}
	return raw
}
