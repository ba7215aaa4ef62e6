package host_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/host"
	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
)

type infoFunc struct {
	pluginv1.UnimplementedPluginServiceServer
	info func(context.Context) error
}

func (f infoFunc) Info(ctx context.Context, _ *pluginv1.InfoRequest) (*pluginv1.InfoResponse, error) {
	return nil, f.info(ctx)
}

// failureOf returns the error of an Info call to a server that implements it with info.
func failureOf(t *testing.T, info func(context.Context, *grpc.Server) error) error {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pluginv1.RegisterPluginServiceServer(server, infoFunc{info: func(ctx context.Context) error { return info(ctx, server) }})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), host.DialOption())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, err = pluginv1.NewPluginServiceClient(host.Wrap(conn)).Info(t.Context(), &pluginv1.InfoRequest{})
	return err
}

func TestABrokenConnectionDiffersFromAnUnavailableResponse(t *testing.T) {
	answered := failureOf(t, func(context.Context, *grpc.Server) error { return status.Error(codes.Unavailable, "no backend") })
	if !errors.Is(answered, plugins.ErrUnavailable) || errors.Is(answered, host.ErrDisconnected) {
		t.Errorf("the plugin answered: %v", answered)
	}
	broken := failureOf(t, func(ctx context.Context, s *grpc.Server) error {
		go s.Stop()
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(broken, plugins.ErrUnavailable) || !errors.Is(broken, host.ErrDisconnected) {
		t.Errorf("the connection broke: %v", broken)
	}
}
