package link

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tapped is a transport whose connection belongs to a link: the SDK's session reads through it,
// and sees only what the link leaves to it.
type tapped struct {
	l *Link
	t mcp.Transport
}

// Connect implements mcp.Transport.
func (t tapped) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := t.t.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.l.conn = conn
	if stdio, ok := conn.(*stdioConn); ok {
		t.l.out = stdio
		return &stdioTap{stdioConn: stdio, l: t.l, gate: newGate()}, nil
	}
	return newMessageTap(t.l, conn), nil //nolint:contextcheck // ctx is the handshake's; the tap lives as long as the link
}

// stdioTap gives the SDK a bundle's requests and the answers to its own calls.
type stdioTap struct {
	*stdioConn
	l    *Link
	gate gate
}

// Read implements mcp.Connection. It runs on the SDK's one reading goroutine.
func (t *stdioTap) Read(context.Context) (jsonrpc.Message, error) {
	for {
		f, err := t.next()
		if err != nil {
			t.l.fail(err)
			return nil, err
		}
		if f.lost != nil {
			if c := t.l.take(f.envelope.number); c != nil {
				c.finish(answer{err: f.lost})
			}
			continue
		}
		if t.l.route(&f.envelope, f.owned) { //nolint:contextcheck // what arrives lives as long as the link
			continue
		}
		msg, err := jsonrpc.DecodeMessage(f.data)
		if err != nil {
			t.discard(f.data, "a message that the MCP SDK refuses")
			continue
		}
		t.gate.admit(msg, t.l.done)
		return msg, nil
	}
}

// Write implements mcp.Connection.
func (t *stdioTap) Write(ctx context.Context, msg jsonrpc.Message) error {
	defer t.gate.answered(msg)
	return t.stdioConn.Write(ctx, msg)
}
