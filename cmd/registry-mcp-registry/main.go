// Command registry-mcp-registry is the mcp-registry registry as a plugin of its own.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/mcpregistry"
)

func main() { registry.Serve(mcpregistry.New()) }
