package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/cmd/ropewalk/params"
)

// question is a question from an app during a run (docs/api.md 5.4).
type question struct {
	ID, Server, Mode, Message, URL string
	RequestedSchema                params.Schema
}

// The possible actions in response to a question.
const (
	accept  = "accept"
	decline = "decline"
	cancel  = "cancel"
)

// ask asks the person an app's question and sends the answer.
func (p *printer) ask(ctx context.Context, q question) error {
	action, content := decline, map[string]json.RawMessage(nil)
	if p.interactive && !p.json {
		p.asking.Store(true)
		defer p.asking.Store(false)
		p.breakLine()
		p.notes.Line("%s", cli.Printable(q.Server+" asks: "+q.Message))
		var err error
		if action, content, err = p.answer(ctx, q); errors.Is(err, context.Canceled) || errors.Is(err, io.EOF) {
			action = cancel
		} else if err != nil {
			return err
		}
	} else {
		p.note("%s asks: %s (declined: standard input is not a terminal)", q.Server, q.Message)
	}
	body := map[string]any{"action": action}
	if content != nil {
		body["content"] = content
	}
	return p.client.Do(ctx, http.MethodPost, "/v1/chat/elicitations/"+url.PathEscape(q.ID), body, nil)
}

// answer asks for each field of a form, or for consent to open an address.
func (p *printer) answer(ctx context.Context, q question) (action string, content map[string]json.RawMessage, err error) {
	if q.Mode == "url" {
		p.notes.Line("  It asks you to open %s", cli.Printable(q.URL))
		yes, err := p.prompt(ctx, "Have you opened it? [y/N] ")
		if err != nil || !strings.HasPrefix(strings.ToLower(yes), "y") {
			return decline, nil, err
		}
		return accept, nil, nil
	}
	content = map[string]json.RawMessage{}
	for _, name := range q.RequestedSchema.Names() {
		value, err := p.field(ctx, name, q.RequestedSchema)
		if err != nil {
			return decline, nil, err
		}
		if value != nil {
			content[name] = value
		}
	}
	yes, err := p.prompt(ctx, "Send this to "+q.Server+"? [Y/n] ")
	if err != nil || strings.HasPrefix(strings.ToLower(yes), "n") {
		return decline, nil, err
	}
	return accept, content, nil
}

// field asks for one value until it is valid. An empty line skips an optional value.
func (p *printer) field(ctx context.Context, name string, s params.Schema) (json.RawMessage, error) {
	property := s.Properties[name]
	label := property.Title
	if label == "" {
		label = name
	}
	hint := property.Hint()
	if s.Requires(name) {
		hint = strings.TrimPrefix(hint+", required", ", ")
	}
	if len(property.Default) > 0 {
		hint += fmt.Sprintf("; default %s", property.Default)
	}
	if property.Description != "" {
		p.notes.Line("  %s", cli.Printable(property.Description))
	}
	for {
		text, err := p.prompt(ctx, fmt.Sprintf("  %s [%s]: ", label, hint))
		switch {
		case err != nil:
			return nil, err
		case text == "" && len(property.Default) > 0:
			return property.Default, nil
		case text == "" && !s.Requires(name):
			return nil, nil
		}
		value, err := property.Value(text)
		if err == nil {
			err = property.Check(value)
		}
		if err == nil {
			return value, nil
		}
		p.notes.Line("  %s %s", cli.Printable(label), cli.Printable(err.Error()))
	}
}

func (p *printer) prompt(ctx context.Context, text string) (string, error) {
	p.cmd.PrintErr(cli.Printable(text))
	line, err := p.line(ctx, nil)
	return strings.TrimSpace(line), err
}
