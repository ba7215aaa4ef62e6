package chat

import (
	"context"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
)

// Check returns an error if the configured default model cannot be called: its provider is unknown or has no key.
func (m *Models) Check() error {
	_, err := m.find(m.byDefault)
	return err
}

// Probe sends a tiny request, which uses a few tokens, to the configured default model and returns the model's name. The
// error is core.CodeModelNotConfigured if no model is configured.
func (m *Models) Probe(ctx context.Context) (string, error) {
	if m.byDefault == "" {
		return "", core.Errorf(core.CodeModelNotConfigured, "no model is configured")
	}
	c, err := m.find(m.byDefault)
	if err != nil {
		return m.byDefault, err
	}
	_, err = c.provider.Call(ctx, c.name, tinyRequest(16), model.Pieces{})
	return c.full, err
}

// tinyRequest returns a request that uses a few tokens.
func tinyRequest(maxTokens int) model.Request {
	return model.Request{Messages: []model.Message{model.TextMessage(model.User, "Reply with the word ok.")}, MaxTokens: maxTokens}
}
