package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/sample"
)

// sampleCommand is what the sample app's bundle runs.
func sampleCommand() *cobra.Command {
	return &cobra.Command{
		Use: "sample", Short: "Be the sample app: an MCP server on standard input and output", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return sample.Serve(cmd.Context(), version) },
	}
}

// printSample prints what a newcomer pastes first. A server with a key wants to see it, and its
// /mcp wants another proof.
func printSample(w io.Writer, url, workspace string, keyed bool) {
	key, hint := "", "put this into its configuration"
	if keyed {
		key = `-H "Authorization: Bearer $SERVICE_API_KEY" `
		hint += "; with an API key, /mcp also wants an identity provider: auth.adapter"
	}
	_, _ = fmt.Fprintf(w, `
Ropewalk is running.

  URL        %[1]s
  Workspace  %[2]s

Call a tool of the sample app:

  curl -s %[1]s/v1/tools/call %[3]s-H 'Content-Type: application/json' -d '{"server":"sample","tool":"echo","arguments":{"text":"hello"}}'

Connect an MCP client (%[4]s):

  {
    "mcpServers": {
      "ropewalk": {
        "type": "http",
        "url": "%[1]s/mcp",
        "headers": { "X-Workspace-Id": "%[2]s" }
      }
    }
  }

`, url, workspace, key, hint)
}
