package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// gate is the file in an app's data directory that opens the calls of `tell` which wait for it.
const gate = "gate"

// addTellers adds tell, whose progress and answer say the text it was given, and ask, whose
// question does. tell waits at the gate, so that as many calls as one likes are under way at once.
func addTellers(s *mcp.Server) {
	open := make(chan struct{})
	go func() {
		defer close(open)
		eventually(10*patience, func() bool {
			_, err := os.Stat(filepath.Join(os.Getenv("ROPEWALK_DATA_DIR"), gate))
			return err == nil
		})
	}()
	text := func(text string) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	}
	mcp.AddTool(s, &mcp.Tool{Name: "tell"}, func(ctx context.Context, r *mcp.CallToolRequest, in said) (*mcp.CallToolResult, any, error) {
		for n := range 3 {
			progress := &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(n), Message: in.Text}
			if err := r.Session.NotifyProgress(ctx, progress); err != nil {
				return nil, nil, err
			}
			if n == 0 {
				<-open
			}
		}
		return text(in.Text)
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, in said) (*mcp.CallToolResult, any, error) {
		answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: in.Text, RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}},
		}})
		if err != nil {
			return nil, nil, err
		}
		return text(fmt.Sprint(answer.Content["name"]))
	})
}

// message is what a client finds on the stream that answers its call.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Token   json.RawMessage `json:"progressToken"`
		Message string          `json:"message"`
	} `json:"params"`
	Result struct {
		Content []struct{ Text string } `json:"content"`
	} `json:"result"`
}

// stream sends a call and shows what comes back, one message after the other, until its result.
// Every client uses the same ids, which are its own.
func (c *mcpClient) stream(ctx context.Context, tool, text string, see func(message) error) error {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"teller__%s","arguments":{"text":%q},"_meta":{"progressToken":1}}}`, tool, text)
	resp, err := c.send(ctx, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		raw, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("%d %s", resp.StatusCode, raw)
	}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var m message
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			return fmt.Errorf("%q: %w", data, err)
		}
		if err := see(m); err != nil {
			return err
		}
		if m.Method == "" {
			return nil
		}
	}
	return errors.New("the stream ended without an answer")
}

// told calls tell, and finds nothing on its stream but what belongs to this call, in its order.
func (c *mcpClient) told(ctx context.Context, nonce string, begun func()) error {
	var order []string
	err := c.stream(ctx, "tell", nonce, func(m message) error {
		switch {
		case m.Method == "notifications/progress" && m.Params.Message == nonce && string(m.Params.Token) == "1":
			if order = append(order, "progress"); len(order) == 1 {
				begun()
			}
		case m.Method == "" && string(m.ID) == "1" && len(m.Result.Content) == 1 && m.Result.Content[0].Text == nonce:
			order = append(order, "answer")
		default:
			return fmt.Errorf("%s got %+v", nonce, m)
		}
		return nil
	})
	if want := []string{"progress", "progress", "progress", "answer"}; err == nil && !slices.Equal(order, want) {
		err = fmt.Errorf("%s got %v", nonce, order)
	}
	return err
}

// asked calls ask, and answers its question with a word that no other client says.
func (c *mcpClient) asked(ctx context.Context, nonce string) error {
	questions := 0
	err := c.stream(ctx, "ask", nonce, func(m message) error {
		switch {
		case m.Method == "elicitation/create" && m.Params.Message == nonce:
			questions++
			answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"name":"answer to %s"}}}`, m.ID, nonce)
			if status, _, body, err := c.post(ctx, answer); err != nil || status != http.StatusAccepted {
				return fmt.Errorf("answering %s: %d %s %w", nonce, status, body, err)
			}
		case m.Method == "" && len(m.Result.Content) == 1 && m.Result.Content[0].Text == "answer to "+nonce:
		default:
			return fmt.Errorf("%s got %+v", nonce, m)
		}
		return nil
	})
	if err == nil && questions != 1 {
		err = fmt.Errorf("%s was asked %d times", nonce, questions)
	}
	return err
}
