// Command registry-mcp-registry runs the built-in mcp-registry registry adapter as a separate plugin.
package main

import (
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/mcpregistry"
)

func main() { registry.Serve(mcpregistry.New()) }
