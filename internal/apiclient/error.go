package apiclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Error is an error response from the API (docs/api.md 1.2).
type Error struct {
	Status  int             `json:"status"`
	Code    string          `json:"error"`
	Message string          `json:"message,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`

	proxy   string // the address, if something other than a Ropewalk server responded there; usually a proxy
	keyFrom string // the setting with the key that was sent; "" if none was
	login   bool   // a login was sent
}

// Error returns the message, with advice if there is any for the code.
func (e *Error) Error() string {
	text := e.Message
	if text == "" {
		text = strings.ReplaceAll(e.Code, "_", " ")
	}
	switch {
	case e.proxy != "" && e.Status == http.StatusGatewayTimeout:
		return e.proxy + " responded with 504 Gateway Timeout: a proxy there stopped waiting for the server, which may still carry out the request"
	case e.proxy != "" && e.Status >= http.StatusInternalServerError:
		return fmt.Sprintf("%s responded with %d %s, but not from a Ropewalk server: a proxy there cannot reach a server that is ready; run `ropewalk doctor` on the server's machine", e.proxy, e.Status, http.StatusText(e.Status))
	case e.Status == http.StatusUnauthorized && e.keyFrom != "":
		return "not authenticated: the server does not accept the key from " + e.keyFrom + ": it belongs to another server, was revoked, or has expired (`ropewalk key create` creates one), or its owner has to log in again after a change of identity provider"
	case e.Status == http.StatusUnauthorized && e.login:
		return "not authenticated: your login has expired or was revoked; run `ropewalk login` again"
	case e.Status == http.StatusUnauthorized:
		return "not authenticated: run `ropewalk login`, or set ROPEWALK_API_KEY to an API key of the server"
	case e.Code == "workspace_required":
		return text + "; choose one with --workspace (`ropewalk workspace list` shows them)"
	case e.Code == "credentials_required":
		return text + e.missing()
	}
	return text
}

// missing lists the settings that an app still needs, as the flags that set them.
func (e *Error) missing() string {
	var d struct {
		Missing []struct {
			Name, Title, Description string
			Sensitive                bool
		}
	}
	if json.Unmarshal(e.Details, &d) != nil || len(d.Missing) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("; add these:")
	for _, m := range d.Missing {
		about := m.Description
		if about == "" {
			about = m.Title
		}
		if m.Sensitive { // must not be on a command line
			fmt.Fprintf(&b, "\n  --env %s       %s (a secret: put it into the environment variable %s first)", m.Name, about, m.Name)
			continue
		}
		fmt.Fprintf(&b, "\n  --env %s=...   %s", m.Name, about)
	}
	return b.String()
}

// newError also reports whether the response has the form of the API's errors.
func newError(res *http.Response) (e *Error, fromAPI bool) {
	e = &Error{Status: res.StatusCode}
	text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // shows whatever arrived
	fromAPI = json.Unmarshal(text, e) == nil && e.Code != ""
	if !fromAPI {
		e.Code, e.Message = http.StatusText(res.StatusCode), strings.TrimSpace(string(text))
	}
	e.Status = res.StatusCode
	return e, fromAPI
}

// refusal returns the error for a response that is not 2xx.
func (c *Client) refusal(res *http.Response) error {
	e, fromAPI := newError(res)
	if !fromAPI {
		e.proxy = c.Server
	}
	if c.Key != "" {
		e.keyFrom = c.KeyFrom
	}
	e.login = c.Key == "" && c.Login != ""
	return e
}

// IsCode reports whether err is an Error with the given code.
func IsCode(err error, code string) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}

// unreachable returns an error with the server's address and what to check, or, if ctx was cancelled, with the cause.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("stopped before the server at %s responded: %w", c.Server, context.Cause(ctx))
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if c.ServerFrom != "" {
		return fmt.Errorf("cannot reach the server at %s, which %s specifies: %w (is it running? `ropewalk up` starts one here; --server selects another)", c.Server, c.ServerFrom, err)
	}
	return fmt.Errorf("cannot reach the server at %s: %w (is it running? `ropewalk up` starts one here; `ropewalk login ADDRESS` logs in to another)", c.Server, err)
}
