// Command registry-directory is the built-in registry adapter directory as a plugin executable.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/directory"
)

func main() { registry.Serve(directory.New()) }
