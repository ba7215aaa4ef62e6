package pluginhost

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/plugins"
)

// Handle is a running plugin.
type Handle interface {
	comparable
	// Outdated reports whether the plugin's file has changed since it was started.
	Outdated() (bool, error)
	Close(ctx context.Context)
}

// Member is a running plugin of a Set with its configuration.
type Member[H Handle] struct {
	config.Plugin
	Handle H
}

// Set holds the running plugins of one kind, in the order of the configuration. A reload replaces those whose
// settings or file changed; the others keep running. It is safe for concurrent use, except that only one
// Exchange may be prepared at a time.
type Set[H Handle] struct {
	open func(ctx context.Context, p config.Plugin, old ...H) (H, error)
	all  atomic.Pointer[[]Member[H]]
}

// NewSet returns a Set without plugins. open starts a plugin to replace the old ones, which are closed when the
// new one is in use.
func NewSet[H Handle](open func(ctx context.Context, p config.Plugin, old ...H) (H, error)) *Set[H] {
	return &Set[H]{open: open}
}

// Members returns the running plugins. The caller must not change the slice.
func (s *Set[H]) Members() []Member[H] {
	if all := s.all.Load(); all != nil {
		return *all
	}
	return nil
}

// Close closes all plugins.
func (s *Set[H]) Close(ctx context.Context) { closeMembers(ctx, s.Members()) }

// Exchange is a prepared change of a Set to a new configuration: everything that it needs is running, but not
// in use yet.
type Exchange[H Handle] struct {
	set     *Set[H]
	Next    []Member[H] // all plugins of the configuration
	Started []Member[H] // the plugins in Next that were started for this change
	Retired []Member[H] // the plugins in use that the new configuration no longer has
}

// Prepare starts the configured plugins that are not running yet, all of them or none. The error is a
// config.Problems with the place of each problem.
func (s *Set[H]) Prepare(ctx context.Context, c *config.Config, next []config.Plugin) (_ *Exchange[H], err error) {
	x := &Exchange[H]{set: s, Next: make([]Member[H], len(next))}
	defer func() {
		if err != nil {
			x.Drop(ctx)
		}
	}()
	for _, m := range s.Members() {
		kept, err := x.keep(c, m, next)
		if err != nil {
			return nil, err
		}
		if !kept {
			x.Retired = append(x.Retired, m)
		}
	}
	var none H
	for i, p := range next {
		if x.Next[i].Handle != none {
			continue
		}
		h, err := s.open(ctx, p, handlesOf(x.Retired)...)
		if err != nil {
			return nil, Located(c, p, err)
		}
		x.Next[i] = Member[H]{p, h}
		x.Started = append(x.Started, x.Next[i])
	}
	return x, nil
}

// keep reuses a running plugin if the new configuration still has the same plugin, and updates its place in the
// configuration. The error says why the plugin could not be started now.
func (x *Exchange[H]) keep(c *config.Config, m Member[H], next []config.Plugin) (kept bool, err error) {
	i := slices.IndexFunc(next, func(p config.Plugin) bool {
		p.At = m.At // its place in the file does not matter
		return reflect.DeepEqual(p, m.Plugin)
	})
	if i < 0 {
		return false, nil
	}
	outdated, err := m.Handle.Outdated()
	if err != nil {
		return false, Located(c, next[i], err)
	}
	if !outdated {
		x.Next[i] = Member[H]{next[i], m.Handle}
	}
	return !outdated, nil
}

// Changes reports whether a plugin was started or will be closed.
func (x *Exchange[H]) Changes() bool { return len(x.Started)+len(x.Retired) > 0 }

// Apply puts the plugins into use. The caller must direct their users to the new ones and then call Retire.
func (x *Exchange[H]) Apply() { x.set.all.Store(&x.Next) }

// Drop closes what was started. Call it instead of Apply.
func (x *Exchange[H]) Drop(ctx context.Context) { closeMembers(ctx, x.Started) }

// Retire closes the plugins that are no longer used, after Apply.
func (x *Exchange[H]) Retire(ctx context.Context) { closeMembers(ctx, x.Retired) }

func closeMembers[H Handle](ctx context.Context, all []Member[H]) {
	for _, m := range all {
		m.Handle.Close(ctx)
	}
}

func handlesOf[H Handle](all []Member[H]) (handles []H) {
	for _, m := range all {
		handles = append(handles, m.Handle)
	}
	return handles
}

// Located adds the place in the configuration file to the problems that a plugin found in its settings.
func Located(c *config.Config, p config.Plugin, err error) error {
	if err == nil {
		return nil
	}
	invalid, ok := errors.AsType[*plugins.ConfigError](err)
	if !ok {
		return config.Problems{c.Problem(p.At, err.Error())}
	}
	var all config.Problems
	for _, problem := range invalid.Problems {
		path := p.At
		if problem.Path != "" {
			path += "." + problem.Path
		}
		problem.Path = ""
		all = append(all, c.Problem(path, problem.String()))
	}
	return all
}
