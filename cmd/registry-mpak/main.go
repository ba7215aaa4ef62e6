// Command registry-mpak runs the built-in mpak registry adapter as a separate plugin.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/mpak"
)

func main() { registry.Serve(mpak.New()) }
