package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// streamMessage is a message in the response stream of a call.
type streamMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Token   json.RawMessage `json:"progressToken"`
		Message string          `json:"message"`
	} `json:"params"`
	Result struct {
		Content  []struct{ Text string } `json:"content"`
		State    string                  `json:"requestState"`
		Requests map[string]struct {
			Method string
			Params struct{ Message string }
		} `json:"inputRequests"`
	} `json:"result"`
}

// toolCall is one tool call. All its messages contain the call's text. Different clients use the same IDs and progress
// tokens.
type toolCall struct {
	*harness.MCPClient
	tool, text string
	id         int            // the ID, unique in the session; also the progress token
	onProgress func()         // called after the first progress message; may be nil
	shared     *sharedSession // the calls that share the session; may be nil
	received   []string       // the kinds of the received messages
	replies    map[string]json.RawMessage
	state      string
}

// run makes the call. All messages must belong to this call and arrive in the given order.
func (k *toolCall) run(ctx context.Context, want ...string) error {
	again, err := k.round(ctx)
	for err == nil && again {
		again, err = k.round(ctx)
	}
	if err == nil && !slices.Equal(k.received, want) {
		err = fmt.Errorf("%s got %v", k.text, k.received)
	}
	return err
}

// round sends one request for the call. again is true if the result asks for input, as results in the stateless
// revision can.
func (k *toolCall) round(ctx context.Context) (again bool, err error) {
	resp, err := k.Send(ctx, k.request(), k.headers()...)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		raw, _ := io.ReadAll(resp.Body)
		return false, fmt.Errorf("%s: %d %s", k.text, resp.StatusCode, raw)
	}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "" {
			continue
		}
		var m streamMessage
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			return false, fmt.Errorf("%q: %w", data, err)
		}
		if err := k.handle(ctx, m); err != nil {
			return false, fmt.Errorf("%s received %s: %w", k.text, data, err)
		}
		if m.Method == "" {
			return m.Result.State != "", nil
		}
	}
	return false, fmt.Errorf("%s: the stream ended without an answer", k.text)
}

// request returns the message for the call. It contains the answers to the questions of the previous round.
func (k *toolCall) request() string {
	meta := map[string]any{"progressToken": k.id}
	params := map[string]any{"name": k.tool, "arguments": harness.TextArguments{Text: k.text}, "_meta": meta}
	if k.Stateless {
		meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28"
		meta["io.modelcontextprotocol/clientCapabilities"] = map[string]any{"elicitation": map[string]any{}}
	}
	if k.state != "" {
		params["requestState"], params["inputResponses"] = k.state, k.replies
	}
	raw, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": k.id, "method": "tools/call", "params": params}) // cannot fail for strings and numbers
	return string(raw)
}

func (k *toolCall) headers() []string {
	if !k.Stateless {
		return nil
	}
	return []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", k.tool, "Mcp-Param-Text", k.text}
}

// replyTo returns an answer that depends on the text.
func replyTo(nonce string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"action":"accept","content":{"name":"answer to %s"}}`, nonce))
}

// handle checks one message. If the message is a question, handle answers it.
func (k *toolCall) handle(ctx context.Context, m streamMessage) error {
	switch id := strconv.Itoa(k.id); {
	case m.Method == "notifications/progress" && m.Params.Message == k.text && string(m.Params.Token) == id:
		if k.received = append(k.received, "progress"); len(k.received) == 1 && k.onProgress != nil {
			k.onProgress()
		}
		return nil
	case m.Method == "elicitation/create" && !k.Stateless:
		return k.reply(ctx, m)
	case m.Method != "" || string(m.ID) != id:
		return errors.New("the message belongs to another call")
	case m.Result.State != "" && k.Stateless:
		return k.noteQuestions(m)
	}
	text := k.text
	if slices.Contains(k.received, "question") || k.shared != nil && k.shared.questions(k.text) == 1 {
		text = "answer to " + k.text
	}
	if len(m.Result.Content) != 1 || m.Result.Content[0].Text != text {
		return errors.New("this is not the answer to the call")
	}
	k.received = append(k.received, "answer")
	return nil
}

// reply answers a question that arrived as a request.
func (k *toolCall) reply(ctx context.Context, m streamMessage) error {
	switch {
	case k.shared == nil && m.Params.Message == k.text:
		k.received = append(k.received, "question")
	case k.shared != nil && k.shared.countQuestion(m.Params.Message):
	default:
		return errors.New("no call in the session asked this question")
	}
	status, _, body, err := k.Post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, replyTo(m.Params.Message)))
	if err == nil && status != http.StatusAccepted {
		err = fmt.Errorf("answering: %d %s", status, body)
	}
	return err
}

// noteQuestions records the questions in a result. The next round answers them.
func (k *toolCall) noteQuestions(m streamMessage) error {
	k.state, k.replies = m.Result.State, map[string]json.RawMessage{}
	for name, q := range m.Result.Requests {
		if q.Method != "elicitation/create" || q.Params.Message != k.text {
			return errors.New("the request is not the expected question")
		}
		k.replies[name] = replyTo(k.text)
		k.received = append(k.received, "question")
	}
	return nil
}
