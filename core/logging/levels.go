package logging

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
)

// Levels contains the log levels of a server's components. A component without its own level inherits its parent's level:
// apps.calc inherits from apps, and apps from the default.
type Levels struct {
	mu      sync.Mutex // held while the levels are changed
	current atomic.Pointer[levels]
	known   sync.Map // the top-level components that have a logger
}

type levels struct {
	standard   hclog.Level
	components map[string]hclog.Level
}

// NewLevels returns levels with a default for every component.
func NewLevels(standard hclog.Level) *Levels {
	l := &Levels{}
	l.current.Store(&levels{standard: standard})
	return l
}

// Of returns the level of a component; "" is the default.
func (l *Levels) Of(component string) hclog.Level {
	now := l.current.Load()
	if len(now.components) == 0 {
		return now.standard
	}
	for component != "" {
		if level, ok := now.components[component]; ok {
			return level
		}
		component = component[:max(strings.LastIndexByte(component, '.'), 0)]
	}
	return now.standard
}

// SetDefault changes the level of the components that do not have their own level.
func (l *Levels) SetDefault(level hclog.Level) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current.Store(&levels{standard: level, components: l.current.Load().components})
}

// Change sets levels by component: trace, debug, info, warn, error or off; "" removes a component's own level. The
// component "default" stands for all components without their own level. If any level or component is invalid, nothing
// changes.
func (l *Levels) Change(wanted map[string]string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := levels{standard: l.current.Load().standard, components: maps.Clone(l.current.Load().components)}
	if next.components == nil {
		next.components = map[string]hclog.Level{}
	}
	for _, component := range slices.Sorted(maps.Keys(wanted)) { // sorted, so that the same mistakes always give the same error
		name := wanted[component]
		level := hclog.LevelFromString(name)
		switch {
		case name == "" && component != Default:
			delete(next.components, component)
		case level == hclog.NoLevel:
			return fmt.Errorf("the log level of %[2]q must be trace, debug, info, warn, error or off, not %[1]q", name, component)
		case !l.isKnown(component):
			return fmt.Errorf("the server has no component %q with a log level; its components are %s", component, strings.Join(l.names(), ", "))
		case component == Default:
			next.standard = level
		default:
			next.components[component] = level
		}
	}
	l.current.Store(&next)
	return nil
}

// note records a component that has a logger.
func (l *Levels) note(component string) {
	first, _, _ := strings.Cut(component, ".")
	if _, ok := l.known.Load(first); !ok {
		l.known.Store(first, true)
	}
}

// isKnown reports whether the server has a component. It checks only the top-level component, because the loggers of
// individual apps come and go.
func (l *Levels) isKnown(component string) bool {
	first, _, _ := strings.Cut(component, ".")
	_, ok := l.known.Load(first)
	return ok || component == Default
}

// names returns the top-level components, sorted.
func (l *Levels) names() []string {
	var all []string
	l.known.Range(func(name, _ any) bool {
		all = append(all, name.(string))
		return true
	})
	slices.Sort(all)
	return all
}

// Default is the name of the default among the levels.
const Default = "default"

// All returns the current levels, by component.
func (l *Levels) All() map[string]string {
	now := l.current.Load()
	all := map[string]string{Default: now.standard.String()}
	for component, level := range now.components {
		all[component] = level.String()
	}
	return all
}
