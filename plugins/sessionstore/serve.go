package sessionstore

import (
	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/plugins"
	pluginserver "github.com/ropewalk/ropewalk/plugins/server"
	sessionstorev1 "github.com/ropewalk/ropewalk/proto/ropewalk/sessionstore/v1"
)

// Serve serves store to the server that started this process and returns when the server is done with it. An author's
// main function needs nothing else.
func Serve(store Store) { pluginserver.Serve(Plugin(store)) }

// Plugin returns a plugin that serves store with every protocol version of this contract.
func Plugin(store Store) plugins.Plugin {
	p := plugins.Plugin{
		Kind: plugins.KindSessionStore,
		Impl: store,
		ProtocolVersions: map[int]plugins.Register{
			1: func(s grpc.ServiceRegistrar) {
				sessionstorev1.RegisterSessionStoreServiceServer(s, server{store: store})
			},
		},
	}
	if _, durable := store.(Durable); durable {
		p.Capabilities = append(p.Capabilities, plugins.CapabilityDurable)
	}
	if _, replaces := store.(Replacer); replaces {
		p.Capabilities = append(p.Capabilities, plugins.CapabilityReplace)
	}
	return p
}
