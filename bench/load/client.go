package load

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// Client is one MCP client on one connection.
type Client struct {
	target Target
	to     address
	conn   *conn

	session string
	headers []byte // sent with every request in a session
	params  []byte // params of tools/call
	request []byte // reused
	body    []byte // reused
	id      int64
}

// Dial connects to the target. It does not open a session.
func Dial(t Target) (*Client, error) {
	to, err := t.parse()
	if err != nil {
		return nil, err
	}
	c := &Client{target: t, to: to, params: t.callParams()}
	c.conn, err = to.open()
	c.headers = to.head
	return c, err
}

// Open opens a session: initialize, then notifications/initialized.
func (c *Client) Open() error {
	c.headers, c.session = c.to.head, ""
	a, err := c.post("initialize", []byte(`{"protocolVersion":"`+revision+`","capabilities":{},"clientInfo":{"name":"ropewalk-bench","version":"1"}}`))
	if err != nil {
		return err
	}
	if err := c.judge(a); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	c.session = a.session
	c.headers = append(bytes.Clone(c.to.head), "Mcp-Protocol-Version: "+revision+"\r\n"...)
	if c.session != "" {
		c.headers = append(c.headers, "Mcp-Session-Id: "+c.session+"\r\n"...)
	}
	a, err = c.send("POST", []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if err == nil && a.status != 202 && a.status != 204 && a.status != 200 {
		err = fmt.Errorf("notifications/initialized: status %d: %.300s", a.status, a.body)
	}
	return err
}

// Call calls the target's tool once.
func (c *Client) Call() error { return c.Ask("tools/call", c.params) }

// List requests the list of tools once.
func (c *Client) List() error { return c.Ask("tools/list", []byte("{}")) }

// Answer returns the body of the last response. It is valid until the next request.
func (c *Client) Answer() []byte { return c.conn.body }

// Ask sends a request and checks that the response is a result.
func (c *Client) Ask(method string, params []byte) error {
	a, err := c.post(method, params)
	if err != nil {
		return err
	}
	return c.judge(a)
}

// Close ends the session, if the server assigned one.
func (c *Client) Close() error {
	if c.session == "" {
		return nil
	}
	a, err := c.send("DELETE", nil)
	if err == nil && a.status/100 != 2 {
		err = fmt.Errorf("DELETE: status %d: %.300s", a.status, a.body)
	}
	c.session = ""
	return err
}

// Stream opens the session's GET stream on a separate connection, and leaves it open and unread. Closing the
// returned connection ends the stream.
func (c *Client) Stream() (interface{ Close() error }, error) {
	s, err := c.to.open()
	if err != nil {
		return nil, err
	}
	if err = s.send(c.frame("GET", nil)); err == nil {
		var a response
		if a, _, err = s.head(); err == nil && a.status != 200 {
			err = fmt.Errorf("GET: status %d", a.status)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.net.Close())
	}
	return s.net, nil
}

// Hangup closes the connection.
func (c *Client) Hangup() { _ = c.conn.net.Close() }

func (c *Client) post(method string, params []byte) (response, error) {
	c.id++
	b := c.body[:0]
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, c.id, 10)
	b = append(append(append(b, `,"method":"`...), method...), `","params":`...)
	c.body = append(append(b, params...), '}')
	return c.send("POST", c.body)
}

func (c *Client) send(method string, body []byte) (response, error) {
	return c.conn.do(c.frame(method, body))
}

// frame returns a complete HTTP request.
func (c *Client) frame(method string, body []byte) []byte {
	b := c.request[:0]
	b = append(b, method...)
	b = append(append(append(b, ' '), c.to.path...), " HTTP/1.1\r\n"...)
	b = append(b, c.headers...)
	if body != nil {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(len(body)), 10)
		b = append(b, "\r\n"...)
	}
	c.request = append(append(b, "\r\n"...), body...)
	return c.request
}

// judge returns an error unless the response is a result.
func (c *Client) judge(a response) error {
	if a.status != 200 {
		return fmt.Errorf("status %d: %.300s", a.status, a.body)
	}
	if !bytes.Contains(a.body, []byte(`"result":`)) || bytes.Contains(a.body, []byte(`"isError":true`)) {
		return fmt.Errorf("no result: %.300s", a.body)
	}
	return nil
}
