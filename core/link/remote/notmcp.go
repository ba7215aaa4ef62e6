package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

// answer describes a server's response.
type answer struct {
	status  int
	media   string // media type of the body, such as text/html
	message string // the message of a JSON-RPC error in a response that rejects the request; "" for none
}

// maxMessage is how many characters of a server's message are shown.
const maxMessage = 200

// readError reads the body of a response that rejects a request, and leaves the body readable.
func (a *answer) readError(resp *http.Response) error {
	body, err := readUpTo(resp.Body, maxErrorBody)
	if err != nil {
		return err
	}
	resp.Body = limited{Reader: bytes.NewReader(body), Closer: resp.Body}
	var refused struct {
		Error struct{ Message string }
	}
	if json.Unmarshal(body, &refused) == nil {
		if message := []rune(refused.Error.Message); len(message) > 0 {
			a.message = string(message[:min(len(message), maxMessage)])
		}
	}
	return nil
}

// checkEndpoint is the advice if something other than an MCP endpoint responds.
const checkEndpoint = "check the transport, and that the URL is that of an MCP endpoint, whose path is often /mcp"

// NotMCP turns err, which ended the handshake, into an error that describes the server's last response.
func (c *Conn) NotMCP(err error) *Error { return c.http.notMCP(err) }

func (c *roundTripper) notMCP(cause error) *Error {
	last := c.answered.Load()
	failed := c.failure("", cause)
	if last != nil && (last.status < 200 || last.status > 299) {
		failed.Status = last.status
	}
	switch {
	case last == nil:
		failed.Reason = fmt.Sprintf("closed the connection before it responded: %s", checkEndpoint)
	case last.message != "":
		failed.Reason = fmt.Sprintf("responded with %s: %q", status(last.status), last.message)
	case last.status >= http.StatusInternalServerError, last.status == http.StatusTooManyRequests, last.status == http.StatusRequestTimeout:
		failed.Reason = fmt.Sprintf("responded with %s: try again later, or ask whoever runs it", status(last.status))
	case last.status < 200 || last.status > 299:
		failed.Reason = fmt.Sprintf("responded with %s: %s", status(last.status), checkEndpoint)
	case last.media == "application/json" || last.media == "text/event-stream":
		failed.Reason = fmt.Sprintf("responded with data that is not an MCP message: %s", checkEndpoint)
	default:
		failed.Reason = fmt.Sprintf("responded with %s, which is not MCP: %s", describe(last.media), checkEndpoint)
	}
	return failed
}

// status formats a status code with its name, such as "404 Not Found".
func status(code int) string {
	if text := http.StatusText(code); text != "" {
		return fmt.Sprintf("%d %s", code, text)
	}
	return fmt.Sprint(code)
}

func describe(media string) string {
	if media == "" {
		return "a body without a content type"
	}
	return fmt.Sprintf("%.100q", media)
}
