package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// session is one use of the command.
type session struct {
	cmd        *cobra.Command
	client     *apiclient.Client
	json       bool
	asks       bool // a person can answer questions
	lines      <-chan string
	interrupts <-chan os.Signal
}

// run sends a message, prints the events of the run, and returns the conversation's id. Ctrl-C cancels
// the run: the error is then context.Canceled.
func (s *session) run(r request) (conversation string, err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.cmd.Context()))
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-s.interrupts:
			cancel()
		case <-ended:
		}
	}()
	p := newPrinter(s)
	err = s.client.Stream(ctx, http.MethodPost, "/v1/chat/stream", r, func(e apiclient.Event) error { return p.event(ctx, e) })
	p.breakLine()
	switch {
	case ctx.Err() != nil:
		return p.conversation, ctx.Err()
	case err == nil && !p.done:
		err = errors.New("the stream ended before the answer was complete; `ropewalk conversation show` has what was kept")
	}
	return p.conversation, err
}

// The data of the stream's events (docs/api.md 5.3).
type (
	started   struct{ ConversationID string }
	delta     struct{ Text string }
	toolStart struct {
		Name  string
		Input json.RawMessage
	}
	toolProgress struct {
		Progress, Total float64
		Message         string
	}
	toolDone struct {
		Name   string
		OK     bool
		MS     int64
		Output string
	}
	failure struct{ Error, Message string }
	result  struct {
		ConversationID string
		StopReason     string
		Usage          struct {
			InputTokens, OutputTokens int64
			CostUSD                   *float64
			Model                     string
		}
	}
)

// event prints one event.
func (p *printer) event(ctx context.Context, e apiclient.Event) error {
	if p.json {
		err := cli.WriteJSON(p.out, fmt.Sprintf("{\"event\":%q,\"data\":%s}\n", e.Name, e.Data))
		if err != nil {
			return err
		}
	}
	switch e.Name {
	case "chat.start":
		return decode(e, func(d started) error { p.conversation = d.ConversationID; return nil })
	case "text.delta":
		return decode(e, p.text)
	case "tool.start":
		return decode(e, p.toolStart)
	case "tool.progress":
		return decode(e, p.toolProgress)
	case "tool.done":
		return decode(e, p.toolDone)
	case "elicitation.request":
		return decode(e, func(q question) error { return p.ask(ctx, q) })
	case "error":
		return decode(e, func(f failure) error { return fmt.Errorf("%s: %s", strings.ReplaceAll(f.Error, "_", " "), f.Message) })
	case "done":
		p.done = true
		return decode(e, p.finish)
	}
	return nil
}

func decode[T any](e apiclient.Event, use func(T) error) error {
	var data T
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return fmt.Errorf("event %s is not what the API promises: %w", e.Name, err)
	}
	return use(data)
}
