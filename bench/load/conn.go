package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// patience is the time limit for one response.
const patience = 30 * time.Second

// conn is one persistent HTTP/1.1 connection.
type conn struct {
	net  net.Conn
	in   *bufio.Reader
	body []byte // body of the last response
}

func (a address) open() (*conn, error) {
	c, err := a.dial()
	if err != nil {
		return nil, err
	}
	return &conn{net: c, in: bufio.NewReaderSize(c, 16<<10)}, nil
}

// response is an HTTP response. Its body is valid until the next request.
type response struct {
	status  int
	session string
	body    []byte
}

// do sends a request and reads the complete response.
func (c *conn) do(request []byte) (response, error) {
	if err := c.send(request); err != nil {
		return response{}, err
	}
	a, length, err := c.head()
	if err != nil {
		return a, err
	}
	c.body = c.body[:0]
	switch {
	case length >= 0:
		err = c.take(length)
	case length == chunked:
		err = c.chunks()
	default:
		err = errors.New("the response has neither a length nor chunks")
	}
	a.body = c.body
	return a, err
}

func (c *conn) send(request []byte) error {
	if err := c.net.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := c.net.Write(request)
	return err
}

// Special values for the length of a body.
const (
	chunked = -1
	unknown = -2
)

// head reads the status line and the headers.
func (c *conn) head() (a response, length int, err error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return a, 0, err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return a, 0, fmt.Errorf("not an HTTP/1.1 response: %q", line)
	}
	if a.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return a, 0, fmt.Errorf("not a status line: %q", line)
	}
	length = unknown
	if a.status == 204 || a.status == 202 {
		length = 0 // unless a header says otherwise
	}
	for {
		line, err = c.in.ReadSlice('\n')
		if err != nil {
			return a, 0, err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			return a, length, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case is(name, "content-length"):
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 {
				return a, 0, fmt.Errorf("not a length: %q", line)
			}
		case is(name, "transfer-encoding"):
			length = chunked
		case is(name, "mcp-session-id"):
			a.session = string(value)
		}
	}
}

func is(name []byte, wanted string) bool {
	return len(name) == len(wanted) && bytes.EqualFold(name, []byte(wanted))
}

// take reads n bytes of the body.
func (c *conn) take(n int) error {
	start := len(c.body)
	c.body = append(c.body, make([]byte, n)...)
	_, err := io.ReadFull(c.in, c.body[start:])
	return err
}

// chunks reads a chunked body (RFC 9112, section 7.1). It does not support trailers.
func (c *conn) chunks() error {
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		size, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 32)
		if err != nil {
			return fmt.Errorf("not a chunk size: %q", line)
		}
		if err := c.take(int(size)); err != nil {
			return err
		}
		if _, err := c.in.Discard(2); err != nil {
			return err
		}
		if size == 0 {
			return nil
		}
	}
}
