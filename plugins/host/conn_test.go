package host_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
)

// patient is a store whose Get blocks until its caller gives up. It closes begun when Get starts.
type patient struct {
	*memory.Store
	begun chan struct{}
}

func (s *patient) Get(ctx context.Context, _ string) (sessionstore.Record, error) {
	close(s.begun)
	<-ctx.Done()
	return sessionstore.Record{}, ctx.Err()
}

func TestACallThatIsCutOffIsUnavailableAndAnAbandonedOneIsCanceled(t *testing.T) {
	cases := []struct {
		name string
		cut  func(closeConn, cancelCall func())
		want error
		not  error
	}{
		{"the connection is closed beneath the call", func(closeConn, _ func()) { closeConn() }, plugins.ErrUnavailable, context.Canceled},
		{"the caller gives up", func(_, cancelCall func()) { cancelCall() }, context.Canceled, plugins.ErrUnavailable},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			store := &patient{Store: memory.New(), begun: make(chan struct{})}
			conn := plugintest.Serve(t, sessionstore.Plugin(store))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				<-store.begun
				c.cut(func() { _ = conn.Close() }, cancel)
			}()
			_, err := sessionstore.Client(conn).Get(ctx, "one")
			if !errors.Is(err, c.want) || errors.Is(err, c.not) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
