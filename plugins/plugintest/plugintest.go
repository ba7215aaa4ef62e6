package plugintest

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
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
	configure(t, conn, settings)
	return conn
}

func configure(t testing.TB, conn *grpc.ClientConn, settings string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	config := plugins.Config{JSON: json.RawMessage(settings), DataDir: t.TempDir()}
	if err := host.NewControl(conn).Configure(ctx, config); err != nil {
		t.Fatalf("configure the plugin: %v", err)
	}
}

// startTimeout is how long a plugin may take to start, and then to accept its settings.
const startTimeout = 20 * time.Second

// Main is the TestMain of a plugin with the given main function. It runs the tests. In the test binary that Start
// starts as a plugin, it runs main instead.
func Main(m *testing.M, main func()) {
	if os.Getenv(host.Cookie) != "" { //nolint:forbidigo // the handshake of go-plugin is an environment variable
		main()
		return
	}
	os.Exit(m.Run())
}

// Start starts the test binary as a plugin of a kind, in a separate process, as a server would. It configures the
// plugin with settings and a data directory of its own, and returns a connection to it. Both end with the test. The
// TestMain of the package must call Main.
func Start(t testing.TB, kind plugins.Kind, settings string) *grpc.ClientConn {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)                                                 //nolint:noctx // the client ends it
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()} //nolint:forbidigo // what a server passes on
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  host.Handshake(kind),
		VersionedPlugins: map[int]goplugin.PluginSet{1: {string(kind): connector{}}},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		Cmd:              cmd,
		AutoMTLS:         true,
		SkipHostEnv:      true,
		StartTimeout:     startTimeout,
		Logger:           hclog.New(&hclog.LoggerOptions{Output: os.Stderr, Level: hclog.Warn}),
		GRPCDialOptions:  []grpc.DialOption{host.DialOption(), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(plugins.MaxMessage), grpc.MaxCallSendMsgSize(plugins.MaxMessage))},
	})
	t.Cleanup(client.Kill)
	protocol, err := client.Client()
	if err != nil {
		t.Fatalf("start the plugin: %v", err)
	}
	dispensed, err := protocol.Dispense(string(kind))
	if err != nil {
		t.Fatalf("connect to the plugin: %v", err)
	}
	conn := dispensed.(*grpc.ClientConn)
	configure(t, conn, settings)
	return conn
}

// connector dispenses the connection itself.
type connector struct {
	goplugin.NetRPCUnsupportedPlugin
}

func (connector) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error { return nil }

func (connector) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}
