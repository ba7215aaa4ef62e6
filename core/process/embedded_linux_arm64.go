//go:build shim

package process

import _ "embed"

//go:embed shim_linux_arm64
var embeddedShim []byte
