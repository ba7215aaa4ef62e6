package plugins

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
)

// MaxMessage is the largest message, in bytes, that either side takes in.
const MaxMessage = 16 << 20

// Plugin is an implementation with its wire. A contract package makes it (sessionstore.Plugin);
// Serve, NewServer and plugintest take it.
type Plugin struct {
	Kind   Kind
	Impl   any              // the implementation; its optional powers are found by its methods
	Wires  map[int]Register // wire version -> the services of that version
	Powers []string         // powers of the kind itself, such as PowerLogin
}

// Register puts the services of one wire version on a gRPC server.
type Register func(grpc.ServiceRegistrar)

// Info is who p is.
func (p Plugin) Info() Info {
	info := Info{Kind: p.Kind, Name: executableName(p.Kind), Version: moduleVersion(), Powers: slices.Clone(p.Powers)}
	if named, ok := p.Impl.(Named); ok {
		info.Name = named.Name()
	}
	if versioned, ok := p.Impl.(Versioned); ok {
		info.Version = versioned.Version()
	}
	for wire := range p.Wires {
		info.Wires = append(info.Wires, wire)
	}
	if _, ok := p.Impl.(Configurer); ok {
		info.Powers = append(info.Powers, PowerConfigure)
	}
	if _, ok := p.Impl.(Validator); ok {
		info.Powers = append(info.Powers, PowerValidate)
	}
	slices.Sort(info.Wires)
	slices.Sort(info.Powers)
	return info
}

func executableName(kind Kind) string {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	return strings.TrimPrefix(name, string(kind)+"-")
}

func moduleVersion() string {
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" {
		return build.Main.Version
	}
	return "unknown"
}

// NewServer returns a gRPC server that serves p with one of its wire versions: what Serve puts
// behind the handshake, and what a test can put behind any listener. Errors of the implementation
// are translated, panics are caught, and until Configure was accepted the services of the kind
// refuse (of an implementation that takes settings). It does not close the implementation.
func NewServer(p Plugin, wire int, log hclog.Logger, opts ...grpc.ServerOption) *grpc.Server {
	g := newGuard(p, log)
	s := grpc.NewServer(append(g.options(), opts...)...)
	g.register(s, wire)
	return s
}

func newGuard(p Plugin, log hclog.Logger) *guard {
	g := &guard{plugin: p, log: log, ready: &atomic.Bool{}}
	if _, ok := p.Impl.(Configurer); !ok {
		g.ready.Store(true)
	}
	if user, ok := p.Impl.(LoggerUser); ok {
		user.UseLogger(log)
	}
	return g
}

func (g *guard) register(s grpc.ServiceRegistrar, wire int) {
	pluginv1.RegisterPluginServiceServer(s, &service{plugin: g.plugin, ready: g.ready})
	g.plugin.Wires[wire](s)
}
