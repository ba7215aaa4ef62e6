package link

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core/rpc"
)

const (
	cancelTimeout = 5 * time.Second // for telling a bundle that a call was given up, or what its client says
	drainTime     = time.Second     // for the rest of a call's stream, so that its connection is used again
)

// messageTap stands between the SDK's session and a connection that speaks decoded messages, and
// sends the link's calls over it.
type messageTap struct {
	l      *Link
	conn   mcp.Connection
	toSDK  chan jsonrpc.Message
	gate   gate
	ended  context.Context
	finish context.CancelFunc
}

func newMessageTap(l *Link, conn mcp.Connection) *messageTap {
	t := &messageTap{l: l, conn: conn, toSDK: make(chan jsonrpc.Message), gate: newGate()}
	t.ended, t.finish = context.WithCancel(context.Background())
	l.out = t
	go t.pump()
	return t
}

// pump is the connection's one reader.
func (t *messageTap) pump() {
	defer t.finish()
	for {
		msg, err := t.conn.Read(t.ended)
		if err != nil {
			t.l.fail(err)
			return
		}
		e := envelopeOf(msg)
		if t.l.route(&e, true) {
			continue
		}
		if !t.give(msg) {
			return
		}
	}
}

// give hands a message to the SDK's reader; false when there is none any more.
func (t *messageTap) give(msg jsonrpc.Message) bool {
	t.gate.admit(msg, t.l.done)
	select {
	case t.toSDK <- msg:
		return true
	case <-t.l.done:
		return false
	}
}

// Read implements mcp.Connection.
func (t *messageTap) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-t.toSDK:
		return msg, nil
	case <-t.l.done:
		return nil, t.l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements mcp.Connection.
func (t *messageTap) Write(ctx context.Context, msg jsonrpc.Message) error {
	defer t.gate.answered(msg)
	return t.conn.Write(ctx, msg)
}

// Close implements mcp.Connection.
func (t *messageTap) Close() error {
	t.l.fail(errors.New("closed"))
	t.finish()
	return t.conn.Close()
}

// SessionID implements mcp.Connection.
func (t *messageTap) SessionID() string { return t.conn.SessionID() }

// call implements sender. Over HTTP, writing lasts until the answer begins: nobody waits for it. The
// caller's context ends that only while there is no answer: what comes after it is read to its end.
func (t *messageTap) call(caller context.Context, c *call, r request) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(withHeader(caller, r.header)))
	outlasts := context.AfterFunc(caller, cancel)
	c.stop = func() {
		if outlasts() && caller.Err() == nil {
			time.AfterFunc(drainTime, cancel)
		} else {
			cancel()
		}
	}
	msg := &jsonrpc.Request{ID: (&envelope{kind: idNumber, number: c.id}).id(), Method: r.method}
	if r.params != nil {
		msg.Params = r.append(nil, c.id)
	}
	go func() {
		if err := t.conn.Write(ctx, msg); err != nil {
			t.l.unsent(c, err)
		}
	}()
	return nil
}

// cancelled implements sender.
func (t *messageTap) cancelled(ctx context.Context, id int64, reason string) {
	msg := &jsonrpc.Request{Method: "notifications/cancelled", Params: fmt.Appendf(nil, `{"requestId":%d,"reason":%q}`, id, reason)}
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
		defer cancel()
		if err := t.conn.Write(ctx, msg); err != nil {
			t.l.log.Debug("the app was not told that a call was given up", "app", t.l.o.Name, "error", scrub(err))
		}
	}()
}

// unsent finishes a call that could not be sent, or that the server answered with an HTTP error. A
// server that cannot even be dialled is down, and the link with it.
func (l *Link) unsent(c *call, err error) {
	remote, ok := errors.AsType[*RemoteError](err)
	if ok && remote.Down || errors.Is(err, mcp.ErrSessionMissing) {
		l.drop(err)
		c.finish(answer{err: l.Err()})
		return
	}
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && !rejected(wire) {
		c.finish(answer{err: &rpc.Error{Code: int(wire.Code), Message: wire.Message, Data: wire.Data}})
		return
	}
	c.finish(answer{err: scrub(err)})
}

// rejected recognizes the SDK's own wrapping of what it could not send; it has no name outside.
func rejected(e *jsonrpc.Error) bool {
	return e.Code == -32005 && strings.HasPrefix(e.Message, "rejected by")
}
