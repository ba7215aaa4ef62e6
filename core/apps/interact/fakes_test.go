package interact

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/internal/testkit/fakes"
)

// fakeApp is an installed app that cannot start another instance.
type fakeApp struct{}

func (fakeApp) IsRunning() bool { return true }

func (fakeApp) Roots() []string { return []string{"/srv/a b"} }

func (fakeApp) StartFor(context.Context, Session) (instance.Instance, error) {
	return nil, errors.New("no second instance")
}

func newBroker(t *testing.T, settings *fakes.Settings) *Broker {
	t.Helper()
	if settings == nil {
		settings = &fakes.Settings{}
	}
	return NewBroker(Options{
		Settings: settings, Logger: hclog.NewNullLogger(), CallTimeout: time.Minute, Life: t.Context(),
		Begin: func(ctx context.Context) (context.Context, func(), error) { return ctx, func() {}, nil },
	})
}

func newDialog(b *Broker, name string) *Dialog {
	return b.NewDialog(AppRef{"ws_default", name}, fakeApp{}, hclog.NewNullLogger())
}

// slowPerson answers every request after a delay.
type slowPerson struct{ takes time.Duration }

func (p slowPerson) Ask(ctx context.Context, _ rpc.Question) (json.RawMessage, error) {
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
