package host

import (
	"context"
	"errors"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/ropewalk/ropewalk/plugins"
)

// ErrDisconnected reports that the connection broke before the plugin answered, so that its process
// has probably ended. An error with it is plugins.ErrUnavailable as well. A plugin that answers
// "unavailable" itself, because its backend is away, does not cause it.
var ErrDisconnected = errors.New("the connection to the plugin broke before it answered")

// DialOption lets errors of connections that Wrap wraps be ErrDisconnected.
func DialOption() grpc.DialOption { return grpc.WithStatsHandler(answerWatcher{}) }

// answer records whether the status of a call came from the plugin. gRPC itself reports a broken
// connection with the same code that a plugin may answer.
type answer struct{ watched, received atomic.Bool }

type answerKey struct{}

// disconnected returns err as ErrDisconnected where the plugin did not send it.
func (a *answer) disconnected(err error) error {
	if err == nil || !a.watched.Load() || a.received.Load() || !errors.Is(err, plugins.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return disconnectedError{err}
}

type disconnectedError struct{ error }

func (e disconnectedError) Unwrap() []error { return []error{e.error, ErrDisconnected} }

// answerWatcher is a stats.Handler that fills the answer in the context of a call.
type answerWatcher struct{}

func (answerWatcher) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	if a, ok := ctx.Value(answerKey{}).(*answer); ok {
		a.watched.Store(true)
	}
	return ctx
}

func (answerWatcher) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if _, ok := event.(*stats.InTrailer); !ok {
		return
	}
	if a, ok := ctx.Value(answerKey{}).(*answer); ok {
		a.received.Store(true)
	}
}

func (answerWatcher) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (answerWatcher) HandleConn(context.Context, stats.ConnStats) {}
