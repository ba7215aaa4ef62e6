package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Attach names a plugin and the process that will answer its calls.
type Attach struct {
	Kind   string `json:"kind"`
	Name   string `json:"name,omitempty"` // "" for the only plugin of the kind
	Socket string `json:"socket"`         // the Unix socket that the process listens on
}

// Attached is the process that was attached.
type Attached struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// attach reports the attached process, and an error if the attachment ends on its own. The attachment lasts as long as
// the request does.
func (s *Server) attach(c Commands, w http.ResponseWriter, r *http.Request) {
	var a Attach
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
		answer(w, nil, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		select {
		case <-s.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	begun := false
	err := c.Attach(ctx, a, func(p Attached) {
		begun = true
		answer(w, p, nil)
		_ = http.NewResponseController(w).Flush() // the operator may have disconnected
	})
	switch {
	case err != nil && begun:
		_ = json.NewEncoder(w).Encode(failure{Message: err.Error()})
	case err != nil:
		answer(w, nil, err)
	}
}

// Attach directs a plugin's calls to a process that someone else started, until ctx ends or the attachment does. It
// returns nil if ctx ended, and otherwise the reason. The error is ErrNotRunning if no server is running.
func (c *Client) Attach(ctx context.Context, a Attach, attached func(Attached)) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	res, err := c.send(ctx, http.MethodPost, "/plugins/attach", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	answers := json.NewDecoder(res.Body)
	var p Attached
	if err := answers.Decode(&p); err != nil {
		return fmt.Errorf("the server stopped: %w", err)
	}
	attached(p)
	var f failure
	err = answers.Decode(&f)
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, io.EOF):
		return errors.New("the server stopped")
	case err != nil:
		return fmt.Errorf("the server stopped: %w", err)
	}
	return errors.New(f.Message)
}
