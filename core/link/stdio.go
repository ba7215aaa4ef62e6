package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// FrameOptions are how a bundle's standard streams are read and written.
type FrameOptions struct {
	Name         string        // the app's name, for log lines
	Logger       hclog.Logger  // nil logs nothing
	MaxLine      int           // bytes; 0 is DefaultMaxLine
	WriteTimeout time.Duration // how long the bundle may read nothing while something waits; 0 is 30 s
	Junk         io.Writer     // gets the lines that are no messages, cut at 4 KiB; nil discards them
}

const (
	maxJunk  = 4 << 10 // bytes of one line that go to FrameOptions.Junk
	maxBatch = 1000    // messages in one line
)

// Stdio is the stdio transport (MCP 2025-11-25, basic/transports): one JSON-RPC message a line. in
// is the bundle's standard input, out its standard output; both are closed with the connection.
// Lines that are not messages are skipped and counted; so are lines that are too long, and the
// call that such a line answers fails at once, where it can be identified.
func Stdio(in io.WriteCloser, out io.ReadCloser, o FrameOptions) mcp.Transport {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.MaxLine <= 0 {
		o.MaxLine = DefaultMaxLine
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = defaultWriteTimeout
	}
	return &stdioTransport{in: in, out: out, o: o}
}

type stdioTransport struct {
	in  io.WriteCloser
	out io.ReadCloser
	o   FrameOptions
}

// Connect implements mcp.Transport.
func (t *stdioTransport) Connect(context.Context) (mcp.Connection, error) {
	c := &stdioConn{
		in: t.in, out: t.out, framer: newFramer(t.out, t.o.MaxLine), limit: t.o.MaxLine, junkTo: t.o.Junk,
		junk: tally{log: t.o.Logger, app: t.o.Name, sentence: "the app wrote something else than MCP messages to its standard output"},
	}
	c.queue = newQueue(t.in, t.o.WriteTimeout, c.die)
	go c.queue.run()
	return c, nil
}

// stdioConn is one connection over standard streams.
type stdioConn struct {
	in     io.WriteCloser
	out    io.ReadCloser
	framer *framer
	queue  *queue
	limit  int
	junk   tally
	junkTo io.Writer
	batch  [][]byte // messages of a batch that are still to be read

	once sync.Once
	mu   sync.Mutex
	died error // why the connection closed by itself
}

// frame is one message, or what is known of one that cannot be read.
type frame struct {
	data     []byte
	owned    bool
	envelope envelope
	lost     error // why the message cannot be read; envelope then holds its id
}

// next returns the next message. One that cannot be read is returned only if it names a call.
func (c *stdioConn) next() (frame, error) {
	for {
		if len(c.batch) > 0 {
			data := c.batch[0]
			c.batch = c.batch[1:]
			if f, ok := c.inspect(line{data: data, owned: true}); ok {
				return f, nil
			}
			continue
		}
		l, err := c.framer.next()
		if err != nil {
			return frame{}, c.reason(err)
		}
		l.data = bytes.TrimPrefix(l.data, []byte("\xef\xbb\xbf")) // some runtimes begin their output with it
		data := bytes.TrimLeft(l.data, " \t")
		switch {
		case len(data) == 0:
		case data[0] == '[' && l.over == 0:
			c.unpack(data)
		default:
			if f, ok := c.inspect(l); ok {
				return f, nil
			}
		}
	}
}

// unpack takes a batch (JSON-RPC 2.0 part 6, MCP up to 2025-03-26) apart.
func (c *stdioConn) unpack(data []byte) {
	var batch [][]byte
	s := rawjson.Scanner{Data: data}
	err := s.Array(func(element []byte) error {
		if len(batch) == maxBatch {
			return errEnvelope
		}
		batch = append(batch, bytes.Clone(element))
		return nil
	})
	if err != nil || !s.End() {
		c.discard(data, "a line that is no message")
		return
	}
	c.batch = batch
}

// inspect takes a line apart; ok is false for junk.
func (c *stdioConn) inspect(l line) (f frame, ok bool) {
	if l.over > 0 {
		c.discard(l.data, "a line over the limit of "+strconv.Itoa(c.limit)+" bytes")
		id, found := salvage(l.data, l.tail)
		err := fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, l.over, c.limit)
		return frame{envelope: envelope{kind: idNumber, number: id}, lost: err}, found
	}
	e, err := scanEnvelope(l.data)
	if err == nil {
		if !utf8.Valid(l.data) {
			l.data, l.owned = repaired(l.data), true
			e, err = scanEnvelope(l.data)
		}
		return frame{data: l.data, owned: l.owned, envelope: e}, err == nil
	}
	c.discard(l.data, "a line that is no message")
	if id, found := salvage(l.data[:min(len(l.data), keepEnd)], l.data[max(0, len(l.data)-keepEnd):]); found {
		return frame{envelope: envelope{kind: idNumber, number: id}, lost: fmt.Errorf("%w: %w", ErrMalformed, err)}, true
	}
	return frame{}, false
}

// repaired is data as UTF-8, which JSON must be (RFC 8259 part 8.1): wrong bytes become U+FFFD, as
// they would for most readers.
func repaired(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	return bytes.ToValidUTF8(data, []byte("\uFFFD"))
}

func (c *stdioConn) discard(data []byte, what string) {
	c.junk.add(what)
	if c.junkTo != nil {
		out := append(bytes.Clone(data[:min(len(data), maxJunk)]), '\n')
		_, _ = c.junkTo.Write(out) // a log that cannot be written must not end the connection
	}
}

// Read implements mcp.Connection for a client without a link.
func (c *stdioConn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		f, err := c.next()
		if err != nil {
			return nil, err
		}
		if f.lost != nil {
			continue
		}
		if msg, err := jsonrpc.DecodeMessage(f.data); err == nil {
			return msg, nil
		}
	}
}

// Write implements mcp.Connection: the message is queued.
func (c *stdioConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	oneLine(data)
	return c.queue.add(ctx, len(data), func(buf []byte) []byte { return append(append(buf, data...), '\n') })
}

// call implements sender.
func (c *stdioConn) call(ctx context.Context, p *call, r request) error {
	size := len(r.params) + len(r.method) + 64
	put := func(buf []byte) []byte {
		buf = append(buf, `{"jsonrpc":"2.0","id":`...)
		buf = strconv.AppendInt(buf, p.id, 10)
		buf = append(buf, `,"method":"`...)
		buf = append(append(buf, r.method...), '"')
		if r.params != nil {
			buf = r.append(append(buf, `,"params":`...), p.id)
		}
		return append(buf, '}', '\n')
	}
	if !r.hurry {
		return c.queue.add(ctx, size, put)
	}
	if added, room := c.queue.try(size, put); !added && room != nil {
		return ErrQueueFull
	} else if !added {
		return ErrClosed
	}
	return nil
}

// cancelled implements sender. A queue that is full holds up nobody: the bundle reads nothing anyway.
func (c *stdioConn) cancelled(_ context.Context, id int64, reason string) {
	quoted, err := json.Marshal(reason)
	if err != nil {
		return
	}
	c.queue.try(len(quoted)+96, func(buf []byte) []byte {
		return fmt.Appendf(buf, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":%s}}`+"\n", id, quoted)
	})
}

// die closes the connection for a reason of its own.
func (c *stdioConn) die(cause error) {
	c.mu.Lock()
	if c.died == nil {
		c.died = cause
	}
	c.mu.Unlock()
	_ = c.Close()
}

// reason is why reading ended.
func (c *stdioConn) reason(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.died != nil {
		return c.died
	}
	return err
}

// Close implements mcp.Connection.
func (c *stdioConn) Close() (err error) {
	c.once.Do(func() {
		c.queue.close()
		err = errors.Join(c.in.Close(), c.out.Close())
	})
	return err
}

// SessionID implements mcp.Connection: standard streams have none.
func (c *stdioConn) SessionID() string { return "" }
