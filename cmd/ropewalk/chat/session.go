package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// session is one run of the command.
type session struct {
	cmd         *cobra.Command
	client      *apiclient.Client
	json        bool
	interactive bool // a person can answer questions
	lines       <-chan string
	interrupts  <-chan os.Signal
	queues      bool        // lines that are typed during a run wait until it ends
	answers     chan string // during such a run: the lines that answer questions
	pending     []string    // lines that were typed during a run and not queued
}

// run sends a message, prints the events of the run, and returns the conversation's id. Ctrl-C cancels the run,
// in which case the error is context.Canceled.
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
	if s.queues {
		defer s.follow(ctx, p, r)()
	}
	r.Detach = true
	err = s.client.Stream(ctx, http.MethodPost, "/v1/chat/stream", r, func(e apiclient.Event) error { return p.next(ctx, e) })
	for try := 0; p.conversation != "" && !p.done && !p.failed && ctx.Err() == nil && try < rejoinTries; try++ {
		if err = s.rejoin(ctx, p, try); apiclient.IsCode(err, "not_found") {
			err = nil // the run has ended in the meantime
			break
		}
	}
	for err == nil && p.done && p.takeQueued() {
		err = s.joinQueued(ctx, p)
	}
	p.breakLine()
	switch {
	case ctx.Err() != nil:
		s.stop(p.conversation)
		return p.conversation, ctx.Err()
	case err == nil && !p.done:
		err = errors.New("the stream ended before the answer was complete; `ropewalk conversation show` prints what was saved")
	}
	return p.conversation, err
}

// follow takes the lines that a person types during a run: answers to questions, and messages that wait on the server
// until the run ends. Any other lines are sent after the run. Calling stop ends follow.
func (s *session) follow(ctx context.Context, p *printer, r request) (stop func()) {
	s.answers = make(chan string)
	ended, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-ended:
				return
			case line, open := <-s.lines:
				switch {
				case !open:
					close(s.answers)
					return
				case p.asking.Load():
					select {
					case s.answers <- line:
					case <-ended:
					}
				case strings.TrimSpace(line) == "":
				case len(s.pending) > 0 || strings.TrimSpace(line) == exit || !p.queue(ctx, r, line, ended):
					s.pending = append(s.pending, line)
				}
			}
		}
	}()
	return func() {
		close(ended)
		<-stopped
		s.answers = nil
	}
}

// queue makes a message wait on the server until the run ends. It reports whether the server accepted it.
func (p *printer) queue(ctx context.Context, r request, message string, ended <-chan struct{}) bool {
	select {
	case <-p.started:
	case <-ended:
		return false
	}
	r.Message, r.ConversationID, r.Detach, r.Queue = strings.TrimSpace(message), p.conversation, true, true
	var answer struct{ Response, StopReason string }
	err := p.client.Do(ctx, http.MethodPost, "/v1/chat", r, &answer)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		return false
	case answer.StopReason == "queued":
		p.queued = true
		p.note("Queued; it will be sent when this answer is finished.")
	default: // the run had ended
		p.breakLine()
		p.notes.Line("%s", cli.Printable(answer.Response))
	}
	return true
}

// takeQueued reports whether a message was queued since the last call.
func (p *printer) takeQueued() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	queued := p.queued
	p.queued = false
	return queued
}

// joinQueued prints the run of a queued message.
func (s *session) joinQueued(ctx context.Context, p *printer) error {
	p.done = false
	for range rejoinTries {
		err := s.client.Stream(ctx, http.MethodGet, runOf(p.conversation), nil, func(e apiclient.Event) error { return p.next(ctx, e) })
		if !apiclient.IsCode(err, "not_found") {
			return err
		}
		select {
		case <-time.After(queuedPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.New("the run of the queued message was not found; `ropewalk conversation show` prints its answer")
}

const queuedPause = 300 * time.Millisecond

// rejoinTries is how many times to rejoin a run whose connection was lost.
const rejoinTries = 10

// rejoin continues with the events of a run whose connection was lost.
func (s *session) rejoin(ctx context.Context, p *printer, try int) error {
	if try == 0 {
		p.breakLine()
		s.cmd.PrintErrln("The connection was lost, but the answer continues. Reconnecting.")
	}
	select {
	case <-time.After(time.Duration(try) * time.Second):
	case <-ctx.Done():
		return ctx.Err()
	}
	known := p.seen
	return s.client.Stream(ctx, http.MethodGet, runOf(p.conversation), nil, func(e apiclient.Event) error {
		if known > 0 {
			known--
			return nil
		}
		return p.next(ctx, e)
	})
}

// stop ends a conversation's run on the server.
func (s *session) stop(conversation string) {
	if conversation == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.cmd.Context()), stopTimeout)
	defer cancel()
	if err := s.client.Do(ctx, http.MethodDelete, runOf(conversation), nil, nil); err != nil && !apiclient.IsCode(err, "not_found") {
		s.cmd.PrintErrf("The run was not stopped, and continues on the server: %v\n", err)
	}
}

const stopTimeout = 10 * time.Second

func runOf(conversation string) string {
	return "/v1/conversations/" + url.PathEscape(conversation) + "/run"
}

// next prints the next event and counts it.
func (p *printer) next(ctx context.Context, e apiclient.Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen++
	err := p.event(ctx, e)
	p.failed = p.failed || err != nil
	return err
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
		return decode(e, func(d started) error {
			if p.conversation == "" {
				p.conversation = d.ConversationID
				close(p.started)
			}
			return nil
		})
	case "text.delta":
		return decode(e, p.text)
	case "chat.compacted":
		return decode(e, p.compacted)
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
		return fmt.Errorf("event %s does not match the API: %w", e.Name, err)
	}
	return use(data)
}
