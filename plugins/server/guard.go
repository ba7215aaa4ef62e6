package server

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

	"github.com/ropewalk/ropewalk/plugins"
	rpcstatus "github.com/ropewalk/ropewalk/plugins/internal/status"
	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
)

// guard wraps every method of a plugin. It translates errors, turns a panic into a failure of only that call, and
// refuses calls to the kind's services until Configure has succeeded.
type guard struct {
	plugin plugins.Plugin
	log    hclog.Logger
	ready  *atomic.Bool
	begin  func() // called before each call is served
}

func (g *guard) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(plugins.MaxMessage),
		grpc.MaxSendMsgSize(plugins.MaxMessage),
		grpc.ChainUnaryInterceptor(g.unary),
		grpc.ChainStreamInterceptor(g.stream),
	}
}

func (g *guard) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	g.begin()
	defer g.recover(info.FullMethod, &err)
	if err := g.admit(info.FullMethod); err != nil {
		return nil, err
	}
	resp, err = next(ctx, req)
	return resp, rpcstatus.ToStatus(err)
}

func (g *guard) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	g.begin()
	defer g.recover(info.FullMethod, &err)
	if err := g.admit(info.FullMethod); err != nil {
		return err
	}
	return rpcstatus.ToStatus(next(srv, ss))
}

func (g *guard) admit(method string) error {
	if g.ready.Load() || !strings.HasPrefix(method, "/ropewalk."+string(g.plugin.Kind)+".") {
		return nil
	}
	return status.Error(codes.FailedPrecondition, "the plugin is not configured; call Configure first")
}

func (g *guard) recover(method string, err *error) {
	if value := recover(); value != nil {
		g.log.Error("a call to this plugin panicked", "method", method, "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
		*err = status.Error(codes.Internal, "the plugin panicked; its log contains the stack"+detail(method, value))
	}
}

// New returns a gRPC server that serves p with one of its protocol versions. A test can use it with any listener,
// without the handshake. The server translates the implementation's errors and recovers panics. If the implementation
// has settings, the kind's services refuse calls until Configure has succeeded. The server does not close the
// implementation.
func New(p plugins.Plugin, version int, log hclog.Logger, opts ...grpc.ServerOption) *grpc.Server {
	g := newGuard(p, log)
	s := grpc.NewServer(append(g.options(), opts...)...)
	g.register(s, version)
	return s
}

func newGuard(p plugins.Plugin, log hclog.Logger) *guard {
	g := &guard{plugin: p, log: log, ready: &atomic.Bool{}, begin: func() {}}
	if _, ok := p.Impl.(plugins.Configurer); !ok {
		g.ready.Store(true)
	}
	if user, ok := p.Impl.(plugins.LoggerUser); ok {
		user.UseLogger(log)
	}
	return g
}

func (g *guard) register(s grpc.ServiceRegistrar, version int) {
	pluginv1.RegisterPluginServiceServer(s, &service{plugin: g.plugin, ready: g.ready})
	g.plugin.ProtocolVersions[version](s)
}

// detail returns the text of a panic in Configure, for the operator. For other methods it returns "", because
// anyone may call those.
func detail(method string, value any) string {
	const longest = 200
	if !strings.HasSuffix(method, "/Configure") {
		return ""
	}
	text := fmt.Sprint(value)
	return ": " + strings.ToValidUTF8(text[:min(len(text), longest)], "")
}
