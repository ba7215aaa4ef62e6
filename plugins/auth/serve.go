package auth

import (
	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/plugins"
	pluginserver "github.com/ropewalk/ropewalk/plugins/server"
	authv1 "github.com/ropewalk/ropewalk/proto/ropewalk/auth/v1"
)

// Serve serves adapter to the server that started this process, and returns when the server is done with it. It is all
// that an author's main needs to call. An adapter has the capabilities Login, RequestVerifier, Revoker and Sessions if
// it has their methods.
func Serve(adapter Adapter) { pluginserver.Serve(Plugin(adapter)) }

// Plugin returns adapter as a plugin with every protocol version of this contract.
func Plugin(adapter Adapter) plugins.Plugin {
	login, canLogin := adapter.(Login)
	revoker, canRevoke := adapter.(Revoker)
	sessions, canCheck := adapter.(Sessions)
	p := plugins.Plugin{
		Kind: plugins.KindAuth,
		Impl: adapter,
		ProtocolVersions: map[int]plugins.Register{
			1: func(s grpc.ServiceRegistrar) {
				authv1.RegisterAuthServiceServer(s, server{adapter: adapter})
				if canLogin {
					authv1.RegisterLoginServiceServer(s, loginServer{login: login})
				}
				if canRevoke {
					authv1.RegisterRevocationServiceServer(s, revocationServer{revoker: revoker})
				}
				if canCheck {
					authv1.RegisterSessionServiceServer(s, sessionServer{sessions: sessions})
				}
			},
		},
	}
	if canLogin {
		p.Capabilities = append(p.Capabilities, plugins.CapabilityLogin)
	}
	if canRevoke {
		p.Capabilities = append(p.Capabilities, plugins.CapabilityRevocations)
	}
	if _, verifies := adapter.(RequestVerifier); verifies {
		p.Capabilities = append(p.Capabilities, plugins.CapabilityVerifyRequest)
	}
	if canCheck {
		p.Capabilities = append(p.Capabilities, plugins.CapabilitySessions)
	}
	return p
}
