package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/sample"
	"github.com/ropewalk/ropewalk/core/config"
)

// sampleCommand is what the sample app's bundle runs.
func sampleCommand() *cobra.Command {
	return &cobra.Command{
		Use: "sample", Short: "Run the sample app: an MCP server on standard input and output", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return sample.Serve(cmd.Context(), version) },
	}
}

// printHints prints what a new user needs first, in the mode that the server is in.
func printHints(w io.Writer, url, workspace string, c *config.Config) error {
	header, client := "", ""
	switch {
	case c.APIKey != "" && len(c.Auth) == 0:
		header = `-H "Authorization: Bearer $SERVICE_API_KEY" `
		client = " (with a key of `ropewalk key create`, or after configuring an identity provider: auth.adapter)"
	case c.APIKey != "":
		header = `-H "Authorization: Bearer $SERVICE_API_KEY" `
	case len(c.Auth) > 0:
		header = `-H "Authorization: Bearer $ACCESS_TOKEN" `
	}
	_, err := fmt.Fprintf(w, `
Ropewalk is running.

  URL        %[1]s
  Console    %[1]s in a browser
  Workspace  %[2]s

Call a tool of the sample app:

  ropewalk tool call sample__echo --text hello
  curl -s %[1]s/v1/tools/call %[3]s-H 'Content-Type: application/json' -d '{"server":"sample","tool":"echo","arguments":{"text":"hello"}}'

Connect an MCP client%[4]s; `+"`ropewalk client-config`"+` knows what each one needs:

  {
    "mcpServers": {
      "ropewalk": {
        "type": "http",
        "url": "%[1]s/mcp/me"
      }
    }
  }

`+"`ropewalk doctor`"+` says what is missing, such as a model for `+"`ropewalk chat`"+`. Ctrl-C ends the server.

`, url, workspace, header, client)
	return err
}
