package link

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core/link/framing"
	"github.com/ropewalk/ropewalk/core/link/stdio"
)

// intercepted is a transport whose connection belongs to a link: the SDK's session reads through it and
// receives only the messages that the link does not handle.
type intercepted struct {
	link      *Link
	transport mcp.Transport
}

// Connect implements mcp.Transport.
func (t intercepted) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := t.transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.link.conn = conn
	if lines, ok := conn.(*stdio.Conn); ok {
		c := &stdioConn{Conn: lines, link: t.link, limit: newRequestLimit()}
		t.link.out = c
		return c, nil
	}
	return newMessageConn(t.link, conn), nil //nolint:contextcheck // ctx is the handshake's; the connection lives as long as the link
}

// stdioConn is the SDK's side of a connection over standard streams: it receives the app's requests and
// the answers to the SDK's own calls.
type stdioConn struct {
	*stdio.Conn
	link  *Link
	limit requestLimit
}

// Read implements mcp.Connection. It runs on the SDK's one reading goroutine.
func (c *stdioConn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		f, err := c.Next()
		if err != nil {
			c.link.fail(err)
			return nil, err
		}
		if f.Err != nil {
			if p := c.link.removeCall(f.Envelope.Number); p != nil {
				p.finish(answer{err: f.Err})
			}
			continue
		}
		if c.link.dispatch(&f.Envelope, f.Owned) { //nolint:contextcheck // what arrives lives as long as the link
			continue
		}
		msg, err := jsonrpc.DecodeMessage(f.Data)
		if err != nil {
			c.Discard(f.Data, "a message that the MCP SDK refuses")
			continue
		}
		c.limit.acquire(msg, c.link.done)
		return msg, nil
	}
}

// Write implements mcp.Connection.
func (c *stdioConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	defer c.limit.release(msg)
	return c.Conn.Write(ctx, msg)
}

// send implements sender.
func (c *stdioConn) send(ctx context.Context, p *call, r framing.Request) error {
	return c.Send(ctx, p.id, r)
}

// sendCancelled implements sender.
func (c *stdioConn) sendCancelled(_ context.Context, sender string, id int64, reason string) {
	c.SendCancelled(sender, id, reason)
}
