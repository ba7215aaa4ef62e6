package host

import (
	goplugin "github.com/hashicorp/go-plugin"

	"github.com/ropewalk/ropewalk/plugins"
)

// Cookie is the environment variable that starts a plugin; its value is the kind that is wanted.
const Cookie = "ROPEWALK_PLUGIN"

// Handshake is what a host and a plugin of a kind must agree on.
func Handshake(kind plugins.Kind) goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{MagicCookieKey: Cookie, MagicCookieValue: string(kind)}
}
