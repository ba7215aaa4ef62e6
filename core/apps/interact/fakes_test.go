package interact

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

// fakeApp is an installed app that cannot be started once more.
type fakeApp struct{ key AppKey }

func (a *fakeApp) Key() AppKey   { return a.key }
func (*fakeApp) Bundle() Bundle  { return Bundle{"@a/b", "1.0"} }
func (*fakeApp) IsRunning() bool { return true }
func (*fakeApp) StartFor(context.Context, Session) (Instance, error) {
	return nil, errors.New("no second instance")
}
func (*fakeApp) AcquireSlot() bool { return true }
func (*fakeApp) ReleaseSlot()      {}
func (*fakeApp) CallError(_, _ context.Context, _ Instance, _ string, err error) error {
	return err
}

// fakeSettings keeps settings in memory.
type fakeSettings struct {
	mu     sync.Mutex
	values map[string]string
}

func (s *fakeSettings) PutSetting(_ context.Context, name, value string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[name] = value
	return nil
}

func (s *fakeSettings) Settings(_ context.Context, prefix string) (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := maps.Clone(s.values)
	maps.DeleteFunc(found, func(name, _ string) bool { return !strings.HasPrefix(name, prefix) })
	return found, nil
}

func newBroker(t *testing.T, settings *fakeSettings) *Broker {
	t.Helper()
	if settings == nil {
		settings = &fakeSettings{values: map[string]string{}}
	}
	return NewBroker(Options{
		Settings: settings, Logger: hclog.NewNullLogger(), CallTimeout: time.Minute, StartTimeout: time.Minute, Life: t.Context(),
		Begin: func(ctx context.Context) (context.Context, func(), error) { return ctx, func() {}, nil },
	})
}

func newDialog(b *Broker, name string) *Dialog {
	return b.NewDialog(&fakeApp{AppKey{"ws_default", name}}, hclog.NewNullLogger())
}

// slowPerson answers every request after a time.
type slowPerson struct{ takes time.Duration }

func (p slowPerson) Ask(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
	select {
	case <-time.After(p.takes):
		return json.RawMessage(`{"action":"accept"}`), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func expect[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
