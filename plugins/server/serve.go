package server

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/host"
)

// Serve serves p to the host that started this process. It returns when the host has closed the connection and the
// implementation is closed. Authors call Serve in their contract package instead, as the only statement of main. If the
// process was not started by a host that wants this kind, Serve prints why and exits with status 1.
func Serve(p plugins.Plugin) {
	cookie := os.Getenv(host.Cookie) //nolint:forbidigo // the handshake of go-plugin is an environment variable
	if refusal := refuse(cookie, p.Kind); refusal != "" {
		fmt.Fprintln(os.Stderr, refusal)
		os.Exit(1)
	}
	nameProcess(string(p.Kind) + "-" + p.Info().Name)
	protectMemory()
	log := hclog.New(&hclog.LoggerOptions{Output: os.Stderr, JSONFormat: true, Level: hclog.Trace})
	g := newGuard(p, log)
	stderr := os.Stderr
	g.begin = sync.OnceFunc(func() { os.Stderr = stderr }) // output just before a crash must not go through the connection
	servers := make(chan *grpc.Server, 1)
	go func() { // SIGTERM ends the server, and with it goplugin.Serve, which removes its socket
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		<-terminated
		(<-servers).Stop()
	}()
	versions := map[int]goplugin.PluginSet{}
	for version := range p.ProtocolVersions {
		versions[version] = goplugin.PluginSet{string(p.Kind): endpoint{guard: g, version: version}}
	}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  host.Handshake(p.Kind),
		VersionedPlugins: versions,
		Logger:           log.Named("go-plugin"),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			server := grpc.NewServer(append(g.options(), opts...)...)
			servers <- server
			return server
		},
	})
	closeImpl(p.Impl, log)
}

func refuse(cookie string, kind plugins.Kind) string {
	switch cookie {
	case string(kind):
		return ""
	case "":
		return fmt.Sprintf("this is a Ropewalk plugin of kind %s; a server starts it if its configuration names it, and `ropewalk plugin test` checks it", kind)
	}
	return fmt.Sprintf("this plugin is of kind %s, but was started as one of kind %s; configure it in the section for its kind", kind, cookie)
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

// endpoint registers a plugin's services with go-plugin.
type endpoint struct {
	goplugin.NetRPCUnsupportedPlugin
	guard   *guard
	version int
}

func (e endpoint) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	e.guard.register(s, e.version)
	return nil
}

func (e endpoint) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}
