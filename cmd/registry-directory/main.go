// Command registry-directory is a plugin executable with the built-in registry adapter directory.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/directory"
)

func main() { registry.Serve(directory.New()) }
