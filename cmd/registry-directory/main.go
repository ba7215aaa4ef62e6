// Command registry-directory is the directory registry as a plugin of its own.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/directory"
)

func main() { registry.Serve(directory.New()) }
