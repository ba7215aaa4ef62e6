package host

import (
	"context"
	"errors"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/ropewalk/ropewalk/plugins"
)

// ErrDisconnected means that the connection broke before the plugin responded, so its process has probably ended. Such
// an error is also plugins.ErrUnavailable. A plugin that itself returns "unavailable", because its backend is
// unreachable, does not cause it.
var ErrDisconnected = errors.New("the connection to the plugin broke before it responded")

// DialOption returns a dial option that makes ErrDisconnected possible on connections that Wrap wraps.
func DialOption() grpc.DialOption { return grpc.WithStatsHandler(responseWatcher{}) }

// answer records whether the status of a call came from the plugin. gRPC reports a broken connection with a code that a
// plugin may also return.
type answer struct{ watched, received atomic.Bool }

type responseKey struct{}

// disconnected returns err as an ErrDisconnected if the plugin did not send it.
func (a *answer) disconnected(err error) error {
	if err == nil || !a.watched.Load() || a.received.Load() || !errors.Is(err, plugins.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return disconnectedError{err}
}

type disconnectedError struct{ error }

func (e disconnectedError) Unwrap() []error { return []error{e.error, ErrDisconnected} }

// responseWatcher is a stats.Handler that sets the answer in the context of a call.
type responseWatcher struct{}

func (responseWatcher) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	if a, ok := ctx.Value(responseKey{}).(*answer); ok {
		a.watched.Store(true)
	}
	return ctx
}

func (responseWatcher) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if _, ok := event.(*stats.InTrailer); !ok {
		return
	}
	if a, ok := ctx.Value(responseKey{}).(*answer); ok {
		a.received.Store(true)
	}
}

func (responseWatcher) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (responseWatcher) HandleConn(context.Context, stats.ConnStats) {}
