package model

import (
	"context"
	"errors"
	"strings"
)

// WithoutKey returns p with key redacted from its failures. Some vendors echo a rejected key, and failures are
// logged.
func WithoutKey(p Provider, key string) Provider {
	if key == "" {
		return p
	}
	return keyless{p, key}
}

type keyless struct {
	Provider
	key string
}

// Call implements Provider.
func (k keyless) Call(ctx context.Context, name string, r Request, pieces Pieces) (Answer, error) {
	answer, err := k.Provider.Call(ctx, name, r, pieces)
	if failure, ok := errors.AsType[*Error](err); ok && strings.Contains(failure.Message, k.key) {
		hidden := *failure
		hidden.Message, hidden.cause = strings.ReplaceAll(failure.Message, k.key, "[redacted]"), nil
		return answer, &hidden
	}
	return answer, err
}
