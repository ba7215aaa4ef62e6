package plugins

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// Cookie is the environment variable that starts a plugin; its value is the kind that is wanted.
const Cookie = "ROPEWALK_PLUGIN"

// Handshake is what a host and a plugin of a kind must agree on.
func Handshake(kind Kind) goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{MagicCookieKey: Cookie, MagicCookieValue: string(kind)}
}

// Serve serves p to the host that started this process, and returns when the host is done with it
// and the implementation is closed. Authors call Serve of their contract package, as all of main.
// Started by anything but a host that wants this kind, it says so and exits with status 1.
func Serve(p Plugin) {
	cookie := os.Getenv(Cookie) //nolint:forbidigo // the handshake of go-plugin is an environment variable
	if refusal := refuse(cookie, p.Kind); refusal != "" {
		fmt.Fprintln(os.Stderr, refusal)
		os.Exit(1)
	}
	log := hclog.New(&hclog.LoggerOptions{Output: os.Stderr, JSONFormat: true, Level: hclog.Trace})
	g := newGuard(p, log)
	servers := make(chan *grpc.Server, 1)
	go func() { // SIGTERM ends the server, and with it goplugin.Serve, which removes its socket
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		<-terminated
		(<-servers).Stop()
	}()
	wires := map[int]goplugin.PluginSet{}
	for wire := range p.Wires {
		wires[wire] = goplugin.PluginSet{string(p.Kind): door{guard: g, wire: wire}}
	}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  Handshake(p.Kind),
		VersionedPlugins: wires,
		Logger:           log.Named("go-plugin"),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			server := grpc.NewServer(append(g.options(), opts...)...)
			servers <- server
			return server
		},
	})
	closeImpl(p.Impl, log)
}

func refuse(cookie string, kind Kind) string {
	switch cookie {
	case string(kind):
		return ""
	case "":
		return fmt.Sprintf("this is a Ropewalk plugin of the kind %s; a server starts it when its configuration names it, and `ropewalk plugin test` tries it out", kind)
	}
	return fmt.Sprintf("this plugin is of the kind %s, and was started as one of the kind %s; configure it under the kind it is of", kind, cookie)
}

func closeImpl(impl any, log hclog.Logger) {
	closer, ok := impl.(io.Closer)
	if !ok {
		return
	}
	if err := closer.Close(); err != nil {
		log.Warn("the plugin did not close cleanly", "error", err.Error())
	}
}

// door is where a plugin and go-plugin meet. The host's side has one of its own.
type door struct {
	goplugin.NetRPCUnsupportedPlugin
	guard *guard
	wire  int
}

func (d door) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	d.guard.register(s, d.wire)
	return nil
}

func (d door) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}
