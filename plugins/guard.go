package plugins

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// guard stands in front of every method of a plugin: it translates errors, turns a panic into the
// failure of that one call, and keeps the kind's services shut until Configure was accepted.
type guard struct {
	plugin Plugin
	log    hclog.Logger
	ready  *atomic.Bool
}

func (g *guard) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MaxMessage),
		grpc.MaxSendMsgSize(MaxMessage),
		grpc.ChainUnaryInterceptor(g.unary),
		grpc.ChainStreamInterceptor(g.stream),
	}
}

func (g *guard) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	defer g.recover(info.FullMethod, &err)
	if err := g.admit(info.FullMethod); err != nil {
		return nil, err
	}
	resp, err = next(ctx, req)
	return resp, ToStatus(err)
}

func (g *guard) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer g.recover(info.FullMethod, &err)
	if err := g.admit(info.FullMethod); err != nil {
		return err
	}
	return ToStatus(next(srv, ss))
}

func (g *guard) admit(method string) error {
	if g.ready.Load() || !strings.HasPrefix(method, "/ropewalk."+string(g.plugin.Kind)+".") {
		return nil
	}
	return status.Error(codes.FailedPrecondition, "the plugin is not configured; call Configure first")
}

func (g *guard) recover(method string, err *error) {
	if value := recover(); value != nil {
		g.log.Error("a call of this plugin panicked", "method", method, "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
		*err = status.Error(codes.Internal, "the plugin panicked; its log has the stack")
	}
}
