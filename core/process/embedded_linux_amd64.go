//go:build shim

package process

import _ "embed"

//go:embed shim_linux_amd64
var embeddedShim []byte
