package link

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core/link/framing"
	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/core/rpc"
)

const (
	notifyTimeout = 5 * time.Second // to send a notification: a cancellation, or progress of a question
	drainTime     = time.Second     // to read the rest of a call's stream, so that its connection is used again
)

// messageConn connects the SDK's session with a connection that sends and receives decoded messages, such
// as that of a remote server, and sends the link's calls over it.
type messageConn struct {
	link   *Link
	conn   mcp.Connection
	toSDK  chan jsonrpc.Message
	limit  requestLimit
	ended  context.Context
	finish context.CancelFunc
}

func newMessageConn(l *Link, conn mcp.Connection) *messageConn {
	c := &messageConn{link: l, conn: conn, toSDK: make(chan jsonrpc.Message), limit: newRequestLimit()}
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
		e := framing.FromMessage(msg)
		if c.link.dispatch(&e, true) {
			continue
		}
		if !c.passToSDK(msg) {
			return
		}
	}
}

// receive handles one message of a stream that the server opened; it returns false when the link is done.
func (c *messageConn) receive(data []byte) bool {
	e, err := framing.Scan(data)
	if err != nil || c.link.dispatch(&e, true) {
		return true
	}
	msg, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return true
	}
	return c.passToSDK(msg)
}

// passToSDK gives a message to the SDK's reader; it returns false when the link is done.
func (c *messageConn) passToSDK(msg jsonrpc.Message) bool {
	c.limit.acquire(msg, c.link.done)
	select {
	case c.toSDK <- msg:
		return true
	case <-c.link.done:
		return false
	}
}

// Read implements mcp.Connection.
func (c *messageConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-c.toSDK:
		return msg, nil
	case <-c.link.done:
		return nil, c.link.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements mcp.Connection.
func (c *messageConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	defer c.limit.release(msg)
	return c.conn.Write(ctx, msg)
}

// Close implements mcp.Connection.
func (c *messageConn) Close() error {
	c.link.fail(errors.New("closed"))
	c.finish()
	return c.conn.Close()
}

// SessionID implements mcp.Connection.
func (c *messageConn) SessionID() string { return c.conn.SessionID() }

// send implements sender. Over HTTP a write lasts until the answer begins, so it gets a goroutine. The
// caller's context ends the exchange only until the call is finished; the rest of the stream is read then.
func (c *messageConn) send(caller context.Context, p *call, r framing.Request) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(remote.WithHeader(caller, r.Header)))
	stopWatching := context.AfterFunc(caller, cancel)
	p.stop = func() {
		if stopWatching() && caller.Err() == nil {
			time.AfterFunc(drainTime, cancel)
		} else {
			cancel()
		}
	}
	msg := &jsonrpc.Request{ID: (&framing.Envelope{IDKind: framing.IDNumber, Number: p.id}).ID(), Method: r.Method}
	if r.HasParams() {
		msg.Params = r.AppendParams(nil, p.id)
	}
	go func() {
		err := c.conn.Write(ctx, msg)
		switch {
		case err == nil:
		case caller.Err() != nil: // the exchange ended with its caller, of which the server does not know
			p.finish(answer{err: cancelled{caller.Err()}})
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
			c.link.log.Debug("cancellation not sent", "app", c.link.o.Name, "error", remote.SafeError(err))
		}
	}()
}

// failCall finishes a call that could not be sent, or that the server answered with an HTTP error. When
// the server cannot be reached at all, the link ends too.
func (l *Link) failCall(c *call, err error) {
	failed, ok := errors.AsType[*remote.Error](err)
	if ok && failed.Down || errors.Is(err, mcp.ErrSessionMissing) {
		l.drop(err)
		c.finish(answer{err: l.Err()})
		return
	}
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && !isSDKRejection(wire) {
		c.finish(answer{err: &rpc.Error{Code: int(wire.Code), Message: wire.Message, Data: wire.Data}})
		return
	}
	c.finish(answer{err: remote.SafeError(err)})
}

// isSDKRejection recognizes the error in which the SDK wraps what it could not send; the SDK does not
// export it.
func isSDKRejection(e *jsonrpc.Error) bool {
	return e.Code == -32005 && strings.HasPrefix(e.Message, "rejected by")
}
