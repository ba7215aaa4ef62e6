// Package chat contains `ropewalk chat`: a conversation with a model in the terminal. It shows tool calls while
// they run, and passes on questions from apps.
package chat

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// request is the body of POST /v1/chat/stream (docs/api.md 5.1).
type request struct {
	Message        string   `json:"message"`
	ConversationID string   `json:"conversationId,omitempty"`
	Model          string   `json:"model,omitempty"`
	AllowedTools   []string `json:"allowedTools,omitempty"`
	DisabledApps   []string `json:"disabledApps,omitempty"`
	Detach         bool     `json:"detach"`
	Queue          bool     `json:"queue,omitempty"`
}

// Command returns `ropewalk chat`.
func Command() *cobra.Command {
	c := &cli.Connection{}
	var r request
	cmd := &cobra.Command{
		Use:   "chat [MESSAGE]",
		Short: "Chat with a model that uses the workspace's tools",
		Long: "Chat with a model that uses the workspace's tools. With a message, or `-` for standard input, one " +
			"answer is printed. Without one, messages are read line by line. The answer goes to standard output as it " +
			"arrives. On a terminal, its Markdown is rendered, unless NO_COLOR is set. Tool calls, apps' questions and " +
			"the conversation's id go to standard error.\n\nA line that you type during an answer is sent when the " +
			"answer ends. Ctrl-C cancels the run. At the prompt, Ctrl-D, Ctrl-C or /exit ends the command.",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return chat(cmd, c, r, args) },
	}
	c.Bind(cmd)
	cmd.Flags().StringVar(&r.ConversationID, "conversation", "", "continue this conversation")
	cmd.Flags().StringVar(&r.Model, "model", "", "model to use, provider:name (default the server's)")
	cmd.Flags().StringArrayVar(&r.AllowedTools, "allow", nil, "allow only tools that match this pattern; may be repeated")
	cmd.Flags().StringArrayVar(&r.DisabledApps, "without", nil, "switch this app off in the conversation; may be repeated")
	return cmd
}

func chat(cmd *cobra.Command, c *cli.Connection, r request, args []string) error {
	client, err := c.Client(cmd.Context())
	if err != nil {
		return err
	}
	if err := findConversation(cmd.Context(), client, r.ConversationID); err != nil {
		return err
	}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	s := &session{cmd: cmd, client: client, json: c.JSON, interrupts: interrupts}
	r.Message = strings.Join(args, " ")
	if r.Message == "-" {
		text, err := io.ReadAll(cmd.InOrStdin())
		if err != nil {
			return err
		}
		r.Message = strings.TrimSpace(string(text))
		return s.once(r)
	}
	s.lines = readLines(cmd.InOrStdin())
	s.interactive = cli.IsTerminal(cmd.InOrStdin())
	if r.Message != "" {
		return s.once(r)
	}
	return s.loop(r)
}

// conversationID is the format of conversation ids (docs/api.md 1.1). The server uses the same error code for
// an id in another format and for an invalid workspace.
var conversationID = regexp.MustCompile(`^conv_[0-9a-f]{16}$`)

// findConversation checks that the conversation to continue exists, unless id is "".
func findConversation(ctx context.Context, client *apiclient.Client, id string) error {
	if id == "" {
		return nil
	}
	none := fmt.Errorf("you have no conversation %q in this workspace: `ropewalk conversation list` shows the ids, and without --conversation a new one starts", id)
	if !conversationID.MatchString(id) {
		return none
	}
	err := client.Get(ctx, "/v1/conversations/"+id, nil, nil)
	if apiclient.IsCode(err, "not_found") {
		return none
	}
	return err
}

// readLines sends the lines of r, and closes the channel at the end.
func readLines(r io.Reader) <-chan string {
	lines := make(chan string)
	go func() { // ends with the process if nobody reads any longer
		defer close(lines)
		for scan := bufio.NewScanner(r); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	return lines
}

// once sends one message.
func (s *session) once(r request) error {
	if r.Message == "" {
		return cli.Usage(errors.New("the message is empty"))
	}
	_, err := s.run(r)
	if errors.Is(err, context.Canceled) {
		return errors.New("cancelled; the answer so far is kept in the conversation")
	}
	return err
}

// exit is the line that ends a chat.
const exit = "/exit"

// loop sends lines from standard input until it ends.
func (s *session) loop(r request) error {
	if s.interactive {
		s.cmd.PrintErrf("Ctrl-D or %s ends the chat; Ctrl-C cancels an answer.\n", exit)
		s.queues = !s.json
	}
	for {
		if s.interactive {
			s.cmd.PrintErr("> ")
		}
		message, err := s.line(context.Background(), s.interrupts)
		if err != nil {
			return nil //nolint:nilerr // a chat ends at the end of its input, or with Ctrl-C at the prompt
		}
		r.Message = strings.TrimSpace(message)
		if r.Message == exit {
			return nil
		}
		if r.Message == "" {
			continue
		}
		id, err := s.run(r)
		switch {
		case errors.Is(err, context.Canceled):
			s.cmd.PrintErrln("Cancelled.")
		case err != nil && !s.interactive:
			return err
		case err != nil:
			s.cmd.PrintErrln("error:", cli.Printable(err.Error()))
		}
		if id != "" {
			r.ConversationID = id
		}
	}
}

// line returns the next line of the input, io.EOF at the end, or context.Canceled after an interrupt or when
// ctx is done.
func (s *session) line(ctx context.Context, interrupts <-chan os.Signal) (string, error) {
	if len(s.pending) > 0 && s.answers == nil {
		line := s.pending[0]
		s.pending = s.pending[1:]
		return line, nil
	}
	lines := s.lines
	if s.answers != nil {
		lines = s.answers
	}
	select {
	case line, open := <-lines:
		if !open {
			return "", io.EOF
		}
		return line, nil
	case <-interrupts:
		return "", context.Canceled
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
