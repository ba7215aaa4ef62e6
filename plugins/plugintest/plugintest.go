package plugintest

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"testing"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/host"
	pluginserver "github.com/ropewalk/ropewalk/plugins/server"
)

// Serve serves p with its newest protocol version on an in-memory listener, as a plugin process does after the
// handshake, and returns a connection to it. Both end with the test. It does not configure p; see Configured.
func Serve(t testing.TB, p plugins.Plugin) *grpc.ClientConn {
	t.Helper()
	versions := p.Info().ProtocolVersions
	listener := bufconn.Listen(1 << 20)
	server := pluginserver.New(p, slices.Max(versions), hclog.NewNullLogger())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	conn, err := grpc.NewClient("passthrough:///plugin",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(plugins.MaxMessage)))
	if err != nil {
		t.Fatalf("connect to the plugin: %v", err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		<-ended
	})
	return conn
}

// Configured is Serve, followed by Configure with the given settings and a data directory of its own.
func Configured(t testing.TB, p plugins.Plugin, settings string) *grpc.ClientConn {
	t.Helper()
	conn := Serve(t, p)
	config := plugins.Config{JSON: json.RawMessage(settings), DataDir: t.TempDir()}
	if err := host.NewControl(conn).Configure(t.Context(), config); err != nil {
		t.Fatalf("configure the plugin: %v", err)
	}
	return conn
}
