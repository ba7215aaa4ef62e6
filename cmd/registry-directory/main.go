// Command registry-directory runs the built-in directory registry adapter as a separate plugin.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/directory"
)

func main() { registry.Serve(directory.New()) }
