package audit

import (
	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/plugins"
	pluginserver "github.com/ropewalk/ropewalk/plugins/server"
	auditv1 "github.com/ropewalk/ropewalk/proto/ropewalk/audit/v1"
)

// Serve serves sink to the server that started this process, and returns when the server is done with it. It is all
// that an author's main needs to call.
func Serve(sink Sink) { pluginserver.Serve(Plugin(sink)) }

// Plugin returns sink as a plugin with every protocol version of this contract.
func Plugin(sink Sink) plugins.Plugin {
	p := plugins.Plugin{
		Kind: plugins.KindAudit,
		Impl: sink,
		ProtocolVersions: map[int]plugins.Register{
			1: func(s grpc.ServiceRegistrar) { auditv1.RegisterAuditServiceServer(s, server{sink: sink}) },
		},
	}
	if _, reads := sink.(Reader); reads {
		p.Capabilities = append(p.Capabilities, plugins.CapabilityRead)
	}
	return p
}
