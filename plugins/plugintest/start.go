package plugintest

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/host"
)

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
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	config := plugins.Config{JSON: json.RawMessage(settings), DataDir: t.TempDir()}
	if err := host.NewControl(conn).Configure(ctx, config); err != nil {
		t.Fatalf("configure the plugin: %v", err)
	}
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
