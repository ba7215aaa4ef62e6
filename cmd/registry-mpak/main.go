// Command registry-mpak is a plugin executable with the built-in registry adapter mpak.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/mpak"
)

func main() { registry.Serve(mpak.New()) }
