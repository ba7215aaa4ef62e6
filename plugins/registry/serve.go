package registry

import (
	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/plugins"
	pluginserver "github.com/ropewalk/ropewalk/plugins/server"
	registryv1 "github.com/ropewalk/ropewalk/proto/ropewalk/registry/v1"
)

// Serve serves reg to the server that started this process and returns when the server is done with it. An author's
// main function needs nothing else.
func Serve(reg Registry) { pluginserver.Serve(Plugin(reg)) }

// Plugin returns a plugin that serves reg with every protocol version of this contract.
func Plugin(reg Registry) plugins.Plugin {
	return plugins.Plugin{
		Kind: plugins.KindRegistry,
		Impl: reg,
		ProtocolVersions: map[int]plugins.Register{
			1: func(s grpc.ServiceRegistrar) {
				registryv1.RegisterRegistryServiceServer(s, server{registry: reg})
			},
		},
	}
}
