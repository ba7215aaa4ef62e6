package stdio

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core/rpc"
)

// These errors are wrapped with details.
var (
	// ErrClosed means that the connection is closed.
	ErrClosed = errors.New("the connection is closed")
	// ErrStalled means that the connection was closed because the app stopped reading.
	ErrStalled = errors.New("the app stopped reading its input")
)

// Options configure how an app's standard streams are read and written. The zero value is usable.
type Options struct {
	Name         string        // the app's name, for log lines
	Logger       hclog.Logger  // nil disables logging
	MaxLine      int           // bytes; 0 means rpc.DefaultMaxLine
	WriteTimeout time.Duration // how long the app may read nothing while messages are waiting; 0 means 30 s
}

// New returns the transport (MCP 2025-11-25, basic/transports). in is the app's standard input and out is its standard
// output. Closing the connection closes both.
func New(in io.WriteCloser, out io.ReadCloser, o Options) mcp.Transport {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.MaxLine <= 0 {
		o.MaxLine = rpc.DefaultMaxLine
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = defaultWriteTimeout
	}
	return &transport{in: in, out: out, o: o}
}

type transport struct {
	in  io.WriteCloser
	out io.ReadCloser
	o   Options
}

// Connect implements mcp.Transport.
func (t *transport) Connect(context.Context) (mcp.Connection, error) {
	c := &Conn{
		in: t.in, out: t.out, lines: rpc.NewLineReader(t.out, t.o.MaxLine), limit: t.o.MaxLine,
		discarded: rpc.DiscardLog{Logger: t.o.Logger, Message: "app wrote lines that are not MCP messages to its standard output"},
	}
	c.queue = newWriteQueue(t.in, t.o.WriteTimeout, c.fail)
	go c.queue.run()
	return c, nil
}
