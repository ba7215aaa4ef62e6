// Command registry-mpak is the built-in registry adapter mpak as a plugin executable.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/mpak"
)

func main() { registry.Serve(mpak.New()) }
