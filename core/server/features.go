package server

import (
	"sync/atomic"

	"github.com/ropewalk/ropewalk/core/config"
)

// features holds the current feature flags, which a reload replaces.
type features struct {
	now atomic.Pointer[config.Features]
}

func newFeatures(f config.Features) *features {
	out := &features{}
	out.now.Store(&f)
	return out
}

// Enabled reports whether a flag is on.
func (f *features) Enabled(flag string) bool { return f.now.Load().Enabled(flag) }
