package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"github.com/tailscale/hujson"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

// imported is what became of one server of an mcpServers object (docs/api.md 3.6).
type imported struct{ Name, ServerName, Status, Source, Ref, Message string }

func importCommand(c *cli.Connection) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "import [FILE]", Short: "Install the servers of an mcpServers object, from a file or standard input", Args: cobra.MaximumNArgs(1),
		Long: "Install the servers of an mcpServers object, as other MCP clients have it in their configuration; Visual Studio Code calls it " +
			"servers. Comments and trailing commas are allowed. Without a file it is read from standard input. --dry-run shows what would be installed. The exit status is 1 when a " +
			"server cannot be installed; the others are.",
		Example: "  ropewalk app import ~/.cursor/mcp.json --dry-run\n  pbpaste | ropewalk app import",
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := readInput(cmd, args)
			if err != nil {
				return err
			}
			servers, err := serversOf(text)
			if err != nil {
				return cli.Usage(err)
			}
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			var answer json.RawMessage
			body := map[string]any{"mcpServers": servers, "dryRun": dryRun}
			if err := client.Do(cmd.Context(), http.MethodPost, "/v1/apps/import", body, &answer); err != nil {
				return err
			}
			return printImported(cmd, c, answer)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would be installed, and install nothing")
	return cmd
}

// serversOf returns the servers of a client's configuration, or of a text that is the servers alone.
func serversOf(text []byte) (map[string]json.RawMessage, error) {
	const shape = `it must be an object such as {"mcpServers": {"files": {"command": "npx", "args": ["-y", "a-package"]}}}`
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("the input is empty: give the file of a client's configuration, such as ~/.cursor/mcp.json, or its text on standard input")
	}
	text, err := hujson.Standardize(text)
	if err != nil {
		return nil, fmt.Errorf("the mcpServers object is not JSON: %w", err)
	}
	var document map[string]json.RawMessage
	if json.Unmarshal(text, &document) != nil { // it is JSON of another type
		return nil, fmt.Errorf("the file is not an mcpServers object: %s", shape)
	}
	for _, key := range []string{"mcpServers", "servers"} {
		raw, ok := document[key]
		var servers map[string]json.RawMessage
		if !ok || key == "servers" && isServer(raw) {
			continue
		}
		if err := json.Unmarshal(raw, &servers); err != nil {
			return nil, fmt.Errorf("%s is not an object: %s", key, shape)
		}
		document = servers
		break
	}
	if len(document) == 0 {
		return nil, fmt.Errorf("no server is named: %s", shape)
	}
	return document, nil
}

// isServer reports whether a value is the definition of one server.
func isServer(raw json.RawMessage) bool {
	var definition map[string]json.RawMessage
	if json.Unmarshal(raw, &definition) != nil {
		return false
	}
	var text string
	return json.Unmarshal(definition["command"], &text) == nil || json.Unmarshal(definition["url"], &text) == nil
}

// printImported prints a line for each server, and what keeps some from being installed.
func printImported(cmd *cobra.Command, c *cli.Connection, answer json.RawMessage) error {
	var all struct{ Servers []imported }
	if err := json.Unmarshal(answer, &all); err != nil {
		return fmt.Errorf("the answer is not what the API promises: %w", err)
	}
	failed := 0
	for _, s := range all.Servers {
		if s.Status == "failed" {
			failed++
		}
	}
	err := cli.Print(c, cmd, answer, func(o *cli.Output, r struct{ Servers []imported }) error {
		rows := make([][]string, len(r.Servers))
		for i, s := range r.Servers {
			rows[i] = []string{s.Name, s.ServerName, s.Status, s.Source, s.Ref}
			if s.Message != "" {
				cmd.PrintErrf("%s: %s\n", cli.Printable(s.Name), cli.Printable(s.Message))
			}
		}
		return o.Table([]string{"NAME", "APP", "STATUS", "SOURCE", "FROM"}, rows)
	})
	if err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %s cannot be installed", failed, cli.Count(len(all.Servers), "server"))
	}
	return nil
}

func readInput(cmd *cobra.Command, args []string) ([]byte, error) {
	if len(args) == 1 && args[0] != "-" {
		return os.ReadFile(args[0])
	}
	return io.ReadAll(cmd.InOrStdin())
}
