package fakes

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/core"
)

// Events records published events. The zero value is ready to use.
type Events struct {
	mu  sync.Mutex
	all []core.Event
}

// Publish records an event.
func (e *Events) Publish(one core.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, one)
}

// All returns the events published so far.
func (e *Events) All() []core.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}

// Names returns the names of the events published so far.
func (e *Events) Names() []string {
	var names []string
	for _, one := range e.All() {
		names = append(names, one.Name)
	}
	return names
}

// Count returns how many events with the given name were published so far.
func (e *Events) Count(name string) int {
	n := 0
	for _, one := range e.Names() {
		if one == name {
			n++
		}
	}
	return n
}

// Settings stores settings by name. The zero value is ready to use.
type Settings struct {
	Refuse func(name string) error // returns an error if a setting cannot be written; nil allows all

	mu     sync.Mutex
	values map[string]string
}

// NewSettings returns Settings with the given values.
func NewSettings(values map[string]string) *Settings { return &Settings{values: maps.Clone(values)} }

// PutSetting sets a setting.
func (s *Settings) PutSetting(_ context.Context, name, value string) error {
	if s.Refuse != nil {
		if err := s.Refuse(name); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[string]string{}
	}
	s.values[name] = value
	return nil
}

// Setting returns a setting, or "" if it is not set.
func (s *Settings) Setting(_ context.Context, name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[name], nil
}

// Settings returns the settings whose names start with prefix.
func (s *Settings) Settings(_ context.Context, prefix string) (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := maps.Clone(s.values)
	maps.DeleteFunc(found, func(name, _ string) bool { return !strings.HasPrefix(name, prefix) })
	return found, nil
}

// Audit stores audit records. The zero value is ready to use.
type Audit struct {
	mu      sync.Mutex
	records []core.AuditRecord
	err     error
}

// Record stores a record, and returns the error set by Fail.
func (a *Audit) Record(_ context.Context, r core.AuditRecord) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.records = append(a.records, r)
	return a.err
}

// Fail makes Record return an error, or succeed again if err is nil.
func (a *Audit) Fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

// Take returns the records stored since the last Take.
func (a *Audit) Take() []core.AuditRecord {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.records
	a.records = nil
	return taken
}
