package host

import (
	goplugin "github.com/hashicorp/go-plugin"

	"github.com/ropewalk/ropewalk/plugins"
)

// Cookie is the environment variable that tells an executable to run as a plugin. Its value is the kind that is wanted.
const Cookie = "ROPEWALK_PLUGIN"

// Handshake returns the handshake configuration that a host and a plugin of a kind must agree on.
func Handshake(kind plugins.Kind) goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{MagicCookieKey: Cookie, MagicCookieValue: string(kind)}
}
