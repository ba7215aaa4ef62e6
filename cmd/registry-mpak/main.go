// Command registry-mpak is the mpak registry as a plugin of its own.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/mpak"
)

func main() { registry.Serve(mpak.New()) }
