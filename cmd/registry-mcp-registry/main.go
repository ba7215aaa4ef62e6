// Command registry-mcp-registry is the built-in registry adapter mcp-registry as a plugin executable.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/mcpregistry"
)

func main() { registry.Serve(mcpregistry.New()) }
