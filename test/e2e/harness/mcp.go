package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// MCPClient is an MCP session over plain HTTP. Tests use it to check every single response.
type MCPClient struct {
	URL       string
	Headers   []string
	Session   string
	Stateless bool // whether the client uses revision 2026-07-28, which has no sessions
}

// Initialize is the initialize request of a client without capabilities.
const Initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}`

// OpenSession opens a session. The headers authenticate the caller.
func (s *Server) OpenSession(t *testing.T, headers ...string) *MCPClient {
	t.Helper()
	c := &MCPClient{URL: s.URL, Headers: headers}
	status, header, body, err := c.Post(t.Context(), Initialize)
	if err != nil || status != http.StatusOK {
		t.Fatalf("initialize: %d %s %v", status, body, err)
	}
	c.Session = header.Get("Mcp-Session-Id")
	if status, _, body, err := c.Post(t.Context(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil || status != http.StatusAccepted {
		t.Fatalf("initialized: %d %s %v", status, body, err)
	}
	return c
}

// Echo calls sample__echo with nonce and checks that the response contains nonce. The error contains the actual
// response.
func (c *MCPClient) Echo(ctx context.Context, nonce string) (status int, err error) {
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":"sample__echo","arguments":{"text":%q}}}`, nonce, nonce)
	status, _, body, err := c.Post(ctx, call)
	if err != nil {
		return status, err
	}
	if status != http.StatusOK {
		return status, fmt.Errorf("%d %s", status, body)
	}
	var response struct {
		ID     string `json:"id"`
		Result struct {
			Content []struct{ Text string } `json:"content"`
		} `json:"result"`
	}
	if err := json.Unmarshal(body, &response); err != nil || response.ID != nonce || len(response.Result.Content) != 1 || response.Result.Content[0].Text != nonce {
		return status, fmt.Errorf("got %s in response to %s", body, nonce)
	}
	return status, nil
}

// Post sends a message and reads the response. If the response is an event stream, Post returns the last message.
func (c *MCPClient) Post(ctx context.Context, message string) (int, http.Header, []byte, error) {
	resp, err := c.Send(ctx, message)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, []byte(LastMessage(string(body))), err
}

// LastMessage returns the last message in a response from /mcp. The response may be an event stream, because the server
// uses a stream if the answer takes long.
func LastMessage(body string) string {
	if strings.HasPrefix(body, "{") {
		return body
	}
	at := strings.LastIndex(body, "data: {")
	if at < 0 {
		return body
	}
	line, _, _ := strings.Cut(body[at+len("data: "):], "\n")
	return line
}

// Send sends a message and returns the response, which the caller must read. headers override the client's headers.
func (c *MCPClient) Send(ctx context.Context, message string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/mcp", bytes.NewReader([]byte(message)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("X-Workspace-Id", Workspace)
	if c.Session != "" {
		req.Header.Set("Mcp-Session-Id", c.Session)
	}
	headers = slices.Concat(c.Headers, headers)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return http.DefaultClient.Do(req)
}

// The headers that an MCP client must send.
var (
	WorkspaceHeader = "X-Workspace-Id: " + Workspace
	AcceptHeader    = "Accept: application/json, text/event-stream"
)

// Ping is a ping request.
const Ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// SessionHeader opens a session and returns the header that contains the session's ID.
func (s *Server) SessionHeader(t *testing.T, headers ...string) string {
	t.Helper()
	a := s.Do(t, "POST", "/mcp", Initialize, append([]string{WorkspaceHeader, AcceptHeader}, headers...)...)
	id := a.Header.Get("Mcp-Session-Id")
	if a.Status != 200 || len(id) < 22 { // 128 random bits are 22 characters in base64
		t.Fatalf("initialize: %d %q %s", a.Status, id, a.Body)
	}
	return "Mcp-Session-Id: " + id
}

// SessionNotFound returns the body of the 404 response for a session.
func SessionNotFound(reason string) string {
	return `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Session not found","data":{"reason":"` + reason + `"}},"id":null}`
}
