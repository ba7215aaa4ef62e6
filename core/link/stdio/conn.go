package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// errBatch means that a batch contains too many messages.
var errBatch = errors.New("too many messages in one line")

const maxBatch = 1000 // messages in one line

// Conn is one connection over standard streams.
type Conn struct {
	in    io.WriteCloser
	out   io.ReadCloser
	lines *rpc.LineReader
	queue *writeQueue
	limit int
	batch [][]byte // unread messages of a batch

	discarded rpc.DiscardLog

	once  sync.Once
	mu    sync.Mutex
	cause error // why the connection closed itself
}

// Frame is one message. If the message cannot be read, Err says why.
type Frame struct {
	Data     []byte
	Owned    bool // Data may be kept; otherwise it is valid until the next frame
	Envelope rpc.Envelope
	Err      error // why the message cannot be read; in that case, Envelope contains the id of the call it responds to
}

// Next returns the next message. A message that cannot be read is returned only if it refers to a call.
func (c *Conn) Next() (Frame, error) {
	for {
		if len(c.batch) > 0 {
			data := c.batch[0]
			c.batch = c.batch[1:]
			if f, ok := c.inspect(rpc.Line{Data: data, Owned: true}); ok {
				return f, nil
			}
			continue
		}
		l, err := c.lines.Next()
		if err != nil {
			return Frame{}, c.endCause(err)
		}
		l.Data = bytes.TrimPrefix(l.Data, []byte("\xef\xbb\xbf")) // some runtimes start their output with a byte order mark
		data := bytes.TrimLeft(l.Data, " \t")
		switch {
		case len(data) == 0:
		case data[0] == '[' && l.Over == 0:
			c.splitBatch(data)
		default:
			if f, ok := c.inspect(l); ok {
				return f, nil
			}
		}
	}
}

// splitBatch splits a batch (JSON-RPC 2.0 section 6, MCP up to 2025-03-26).
func (c *Conn) splitBatch(data []byte) {
	var batch [][]byte
	s := rawjson.Scanner{Data: data}
	err := s.Array(func(element []byte) error {
		if len(batch) == maxBatch {
			return errBatch
		}
		batch = append(batch, bytes.Clone(element))
		return nil
	})
	if err != nil || !s.End() {
		c.Discard("a line that is not a message")
		return
	}
	c.batch = batch
}

// inspect scans a line. ok is false if the line was discarded.
func (c *Conn) inspect(l rpc.Line) (f Frame, ok bool) {
	if l.Over > 0 {
		c.Discard("a line longer than the limit of " + strconv.Itoa(c.limit) + " bytes")
		id, found := rpc.CallID(l.Data, l.Tail)
		err := fmt.Errorf("%w: %d bytes, the limit is %d", rpc.ErrTooLarge, l.Over, c.limit)
		return Frame{Envelope: rpc.Envelope{IDKind: rpc.IDNumber, Number: id}, Err: err}, found
	}
	e, err := rpc.Scan(l.Data)
	if err == nil {
		if !utf8.Valid(l.Data) {
			l.Data, l.Owned = rpc.ValidUTF8(l.Data), true
			e, err = rpc.Scan(l.Data)
		}
		return Frame{Data: l.Data, Owned: l.Owned, Envelope: e}, err == nil
	}
	c.Discard("a line that is not a message")
	if id, found := rpc.CallID(l.Data[:min(len(l.Data), rpc.KeptEnd)], l.Data[max(0, len(l.Data)-rpc.KeptEnd):]); found {
		return Frame{Envelope: rpc.Envelope{IDKind: rpc.IDNumber, Number: id}, Err: fmt.Errorf("%w: %w", rpc.ErrMalformed, err)}, true
	}
	return Frame{}, false
}

// Discard counts a line that cannot be used. what describes the line in the log.
func (c *Conn) Discard(what string) { c.discarded.Add(what) }

// Read implements mcp.Connection for a client without a link.
func (c *Conn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		f, err := c.Next()
		if err != nil {
			return nil, err
		}
		if f.Err != nil {
			continue
		}
		if msg, err := jsonrpc.DecodeMessage(f.Data); err == nil {
			return msg, nil
		}
	}
}

// Write implements mcp.Connection. It queues the message.
func (c *Conn) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	rpc.OneLine(data)
	return c.queue.add(ctx, "", len(data), func(buf []byte) []byte { return append(append(buf, data...), '\n') })
}

// Send queues a request. It waits for space until ctx ends.
func (c *Conn) Send(ctx context.Context, id int64, r rpc.Request) error {
	return c.queue.add(ctx, r.Sender, r.Size(), func(buf []byte) []byte { return r.AppendMessage(buf, id) })
}

// SendCancelled queues the notification that a sender's request was cancelled, after the request itself. It drops the
// notification if the queue is full, because an app that does not read its input would not read the notification
// either.
func (c *Conn) SendCancelled(sender string, id int64, reason string) {
	quoted, err := json.Marshal(reason)
	if err != nil {
		return
	}
	c.queue.try(sender, len(quoted)+96, func(buf []byte) []byte {
		return fmt.Appendf(buf, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":%s}}`+"\n", id, quoted)
	})
}

// fail closes the connection with a cause.
func (c *Conn) fail(cause error) {
	c.mu.Lock()
	if c.cause == nil {
		c.cause = cause
	}
	c.mu.Unlock()
	_ = c.Close()
}

// endCause returns why reading ended.
func (c *Conn) endCause(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return c.cause
	}
	return err
}

// Discarded returns how many lines were discarded.
func (c *Conn) Discarded() int64 { return c.discarded.Count() }

// Close implements mcp.Connection.
func (c *Conn) Close() (err error) {
	c.once.Do(func() {
		c.queue.close()
		err = errors.Join(c.in.Close(), c.out.Close())
	})
	return err
}

// SessionID implements mcp.Connection. Standard streams have no session.
func (c *Conn) SessionID() string { return "" }
