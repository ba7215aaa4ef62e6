package e2e

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
	"sync"
)

// message is what a client finds on the stream that answers its call.
type message struct {
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

// A talk is one call of a tool that says the text it was given in everything that it says. Clients
// use the same ids and tokens, which are their own.
type talk struct {
	*mcpClient
	tool, nonce string
	id          int      // unique in its session; also its progress token
	begun       func()   // notified at the first progress; nil for nobody
	party       *party   // who shares the session; nil for nobody
	order       []string // of what came
	answered    map[string]json.RawMessage
	state       string
}

// party is the talks that share a session. What one of them is asked may come on another's stream.
type party struct {
	mu    sync.Mutex
	asked map[string]int // how often, by nonce
}

func (p *party) joins(nonce string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[nonce] = 0
}

// hears notes a question, and reports whether it is for one of these.
func (p *party) hears(nonce string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ours := p.asked[nonce]
	p.asked[nonce]++
	return ours
}

func (p *party) heard(nonce string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[nonce]
}

// goes makes the call to its end. What comes must be this call's, and in this order.
func (k *talk) goes(ctx context.Context, want ...string) error {
	again, err := k.round(ctx)
	for err == nil && again {
		again, err = k.round(ctx)
	}
	if err == nil && !slices.Equal(k.order, want) {
		err = fmt.Errorf("%s got %v", k.nonce, k.order)
	}
	return err
}

// round is one request of the call; again tells that its result asked for something, as results of
// the revision without sessions do.
func (k *talk) round(ctx context.Context) (again bool, err error) {
	resp, err := k.send(ctx, k.request(), k.headersOf()...)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		raw, _ := io.ReadAll(resp.Body)
		return false, fmt.Errorf("%s: %d %s", k.nonce, resp.StatusCode, raw)
	}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "" {
			continue
		}
		var m message
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			return false, fmt.Errorf("%q: %w", data, err)
		}
		if err := k.hears(ctx, m); err != nil {
			return false, fmt.Errorf("%s got %s: %w", k.nonce, data, err)
		}
		if m.Method == "" {
			return m.Result.State != "", nil
		}
	}
	return false, fmt.Errorf("%s: the stream ended without an answer", k.nonce)
}

// request is the call, with what it was asked for in the round before.
func (k *talk) request() string {
	meta := map[string]any{"progressToken": k.id}
	params := map[string]any{"name": k.tool, "arguments": said{k.nonce}, "_meta": meta}
	if k.stateless {
		meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28"
		meta["io.modelcontextprotocol/clientCapabilities"] = map[string]any{"elicitation": map[string]any{}}
	}
	if k.state != "" {
		params["requestState"], params["inputResponses"] = k.state, k.answered
	}
	raw, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": k.id, "method": "tools/call", "params": params}) // strings and numbers
	return string(raw)
}

func (k *talk) headersOf() []string {
	if !k.stateless {
		return nil
	}
	return []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", k.tool, "Mcp-Param-Text", k.nonce}
}

// answerTo is an answer that is given to no other nonce.
func answerTo(nonce string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"action":"accept","content":{"name":"answer to %s"}}`, nonce))
}

// hears takes one message, and answers it if it asks something.
func (k *talk) hears(ctx context.Context, m message) error {
	switch id := strconv.Itoa(k.id); {
	case m.Method == "notifications/progress" && m.Params.Message == k.nonce && string(m.Params.Token) == id:
		if k.order = append(k.order, "progress"); len(k.order) == 1 && k.begun != nil {
			k.begun()
		}
		return nil
	case m.Method == "elicitation/create" && !k.stateless:
		return k.answers(ctx, m)
	case m.Method != "" || string(m.ID) != id:
		return errors.New("which is not its own")
	case m.Result.State != "" && k.stateless:
		return k.willAnswer(m)
	}
	text := k.nonce
	if slices.Contains(k.order, "question") || k.party != nil && k.party.heard(k.nonce) == 1 {
		text = "answer to " + k.nonce
	}
	if len(m.Result.Content) != 1 || m.Result.Content[0].Text != text {
		return errors.New("which is not its answer")
	}
	k.order = append(k.order, "answer")
	return nil
}

// answers takes a question of a session.
func (k *talk) answers(ctx context.Context, m message) error {
	switch {
	case k.party == nil && m.Params.Message == k.nonce:
		k.order = append(k.order, "question")
	case k.party != nil && k.party.hears(m.Params.Message):
	default:
		return errors.New("which nobody of its session is asked")
	}
	status, _, body, err := k.post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, answerTo(m.Params.Message)))
	if err == nil && status != http.StatusAccepted {
		err = fmt.Errorf("answering: %d %s", status, body)
	}
	return err
}

// willAnswer takes the questions of a result; the next round answers them.
func (k *talk) willAnswer(m message) error {
	k.state, k.answered = m.Result.State, map[string]json.RawMessage{}
	for name, q := range m.Result.Requests {
		if q.Method != "elicitation/create" || q.Params.Message != k.nonce {
			return errors.New("which asks for something else")
		}
		k.answered[name] = answerTo(k.nonce)
		k.order = append(k.order, "question")
	}
	return nil
}
