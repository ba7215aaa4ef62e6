// Command registry-mcp-registry is a plugin executable with the built-in registry adapter mcp-registry.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/mcpregistry"
)

func main() { registry.Serve(mcpregistry.New()) }
