package pluginhost

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/plugins"
)

// Probe makes a harmless call to each loaded plugin of a kind. Its error names the first one that does not
// answer before ctx ends: its process is away and is not replaced in time, it hangs, or it cannot reach
// its backend. Plugins that are being closed are left out.
func (h *Host) Probe(ctx context.Context, kind plugins.Kind) error {
	for _, s := range h.loaded() {
		if s.status().Kind != kind {
			continue
		}
		if err := s.probe(ctx); err != nil {
			return err
		}
	}
	return nil
}

// probe makes the harmless call of the slot's kind.
func (s *slot[T]) probe(ctx context.Context) error {
	s.mu.Lock()
	closing := s.closing
	s.mu.Unlock()
	if closing {
		return nil
	}
	if err := s.call(ctx, s.harmless); err != nil {
		return fmt.Errorf("the %s plugin %s does not answer: %w", s.target.kind, s.target.label, err)
	}
	return nil
}
