package apiclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Event is one server-sent event.
type Event struct {
	Name string
	Data json.RawMessage
}

// Stream sends body as JSON, unless it is nil, and calls handle for each event in the response, until the stream
// ends, handle returns an error, or ctx is done. It returns the error from handle, or nil at the end of the stream.
// A response that is not an event stream is an error.
func (c *Client) Stream(ctx context.Context, method, path string, body any, handle func(Event) error) error {
	var reader io.Reader
	contentType := ""
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader, contentType = bytes.NewReader(text), "application/json"
	}
	res, err := c.open(ctx, method, path, contentType, reader)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if t := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || !strings.HasPrefix(t, "text/event-stream") {
		return fmt.Errorf("%s %s: the response is %q, not an event stream", method, path, t)
	}
	return readEvents(res.Body, handle)
}

// maxLine bounds one line of an event stream.
const maxLine = 32 << 20

// readEvents parses an event stream as the HTML standard defines it, without ids and retry times.
func readEvents(r io.Reader, handle func(Event) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	var e Event
	var data []string
	for lines.Scan() {
		line := strings.TrimSuffix(lines.Text(), "\r")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if len(data) > 0 {
				e.Data = json.RawMessage(strings.Join(data, "\n"))
				if err := handle(e); err != nil {
					return err
				}
			}
			e, data = Event{}, nil
		case field == "event":
			e.Name = value
		case field == "data":
			data = append(data, value)
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the stream broke: %w", err)
	}
	return nil
}
