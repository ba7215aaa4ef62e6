package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// mcpClient is an MCP session over plain HTTP, for tests that count every answer.
type mcpClient struct {
	url       string
	headers   []string
	session   string
	stateless bool // it speaks 2026-07-28, without a session
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}`

// openSession opens a session on a server that lets the headers' owner in.
func (s *server) openSession(t *testing.T, headers ...string) *mcpClient {
	t.Helper()
	c := &mcpClient{url: s.url, headers: headers}
	status, header, body, err := c.post(t.Context(), initialize)
	if err != nil || status != http.StatusOK {
		t.Fatalf("initialize: %d %s %v", status, body, err)
	}
	c.session = header.Get("Mcp-Session-Id")
	if status, _, body, err := c.post(t.Context(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil || status != http.StatusAccepted {
		t.Fatalf("initialized: %d %s %v", status, body, err)
	}
	return c
}

// echo calls sample__echo with a nonce; the error says what came back instead of it.
func (c *mcpClient) echo(ctx context.Context, nonce string) (status int, err error) {
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":"sample__echo","arguments":{"text":%q}}}`, nonce, nonce)
	status, _, body, err := c.post(ctx, call)
	if err != nil {
		return status, err
	}
	if status != http.StatusOK {
		return status, fmt.Errorf("%d %s", status, body)
	}
	var answer struct {
		ID     string `json:"id"`
		Result struct {
			Content []struct{ Text string } `json:"content"`
		} `json:"result"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.ID != nonce || len(answer.Result.Content) != 1 || answer.Result.Content[0].Text != nonce {
		return status, fmt.Errorf("%s came back for %s", body, nonce)
	}
	return status, nil
}

func (c *mcpClient) post(ctx context.Context, message string) (int, http.Header, []byte, error) {
	resp, err := c.send(ctx, message)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, body, err
}

// send posts a message; who sends it reads the answer. Headers that are given come last.
func (c *mcpClient) send(ctx context.Context, message string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/mcp", bytes.NewReader([]byte(message)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("X-Workspace-Id", workspace)
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	headers = slices.Concat(c.headers, headers)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return http.DefaultClient.Do(req)
}

// load makes calls at a steady pace, whatever becomes of them, until it is ended.
type load struct {
	stop  chan struct{}
	ended sync.WaitGroup

	mu       sync.Mutex
	calls    int
	statuses map[int]int
	outcomes []outcome
}

// outcome is a call that did not succeed.
type outcome struct {
	began, ended time.Time
	status       int
	err          error
}

// startLoad makes `perSecond` calls a second, in turn on each of the given clients.
func startLoad(t *testing.T, perSecond int, clients ...*mcpClient) *load {
	l := &load{stop: make(chan struct{}), statuses: map[int]int{}}
	l.ended.Go(func() {
		pace := time.NewTicker(time.Second / time.Duration(perSecond))
		defer pace.Stop()
		for i := 0; ; i++ {
			select {
			case <-l.stop:
				return
			case <-pace.C:
				l.ended.Go(func() { l.one(clients[i%len(clients)], fmt.Sprintf("call-%d", i)) })
			}
		}
	})
	t.Cleanup(l.end)
	return l
}

func (l *load) one(c *mcpClient, nonce string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	began := time.Now()
	status, err := c.echo(ctx, nonce)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	l.statuses[status]++
	if err != nil {
		l.outcomes = append(l.outcomes, outcome{began, time.Now(), status, err})
	}
}

// end stops calling and waits for the answers. It may be called again.
func (l *load) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.ended.Wait()
}

// sofar is how many calls have been answered.
func (l *load) sofar() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

// goesOn waits until that many more calls have been answered.
func (l *load) goesOn(t *testing.T, calls int) {
	t.Helper()
	until := l.sofar() + calls
	if !eventually(patience, func() bool { return l.sofar() >= until }) {
		t.Fatalf("%d calls were answered, waiting for %d", l.sofar(), until)
	}
}
