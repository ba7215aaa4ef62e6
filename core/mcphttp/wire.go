package mcphttp

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// wire is the connection of one session as the SDK sees it: an mcp.Transport and its Connection.
// HTTP requests put messages in, write takes the SDK's out.
type wire struct {
	id    string
	in    chan jsonrpc.Message
	write func(context.Context, jsonrpc.Message) error

	hung chan struct{}
	once sync.Once
}

func newWire(id string) *wire {
	return &wire{id: id, in: make(chan jsonrpc.Message), hung: make(chan struct{})}
}

// put hands a message to the SDK. It is false when the session has ended.
func (w *wire) put(m jsonrpc.Message) bool {
	select {
	case w.in <- m:
		return true
	case <-w.hung:
		return false
	}
}

// hangUp ends the connection: the SDK cancels what is in flight and forgets the session.
func (w *wire) hangUp() { w.once.Do(func() { close(w.hung) }) }

// Connect implements mcp.Transport.
func (w *wire) Connect(context.Context) (mcp.Connection, error) { return w, nil }

// SessionID implements mcp.Connection.
func (w *wire) SessionID() string { return w.id }

// Read implements mcp.Connection.
func (w *wire) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-w.in:
		return m, nil
	case <-w.hung:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements mcp.Connection.
func (w *wire) Write(ctx context.Context, m jsonrpc.Message) error {
	select {
	case <-w.hung:
		return errors.New("the session has ended")
	default:
		return w.write(ctx, m)
	}
}

// Close implements mcp.Connection.
func (w *wire) Close() error {
	w.hangUp()
	return nil
}
