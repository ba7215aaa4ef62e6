// Package clientconfig contains `ropewalk client-config`: what each MCP client needs to connect to a server.
package clientconfig

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

// endpoint is what a client connects to.
type endpoint struct {
	URL  string // of the MCP endpoint, including the workspace
	Name string // the client's name for the server
	Key  bool   // an API key is required, in the environment variable ROPEWALK_API_KEY
}

// client is one MCP client.
type client struct {
	title string
	steps func(endpoint) string              // instructions for people
	file  func() (string, error)             // returns the path of its configuration; nil if there is none to write
	entry func(endpoint) (key string, v any) // what to add to the file
	needs string                             // prerequisites for the steps; may be ""

	keyAdvice string // where to put an API key; "" if the client cannot send one
}

// Command returns `ropewalk client-config`.
func Command() *cobra.Command {
	c := &cli.Connection{}
	var name string
	var write bool
	known := clients()
	names := slices.Sorted(maps.Keys(known))
	cmd := &cobra.Command{
		Use: "client-config CLIENT", Short: "Print, or write, what an MCP client needs to connect: " + strings.Join(names, ", "),
		Long: "Print what an MCP client needs to connect to the server. With --write, write it to the client's configuration; existing " +
			"entries are kept. Clients are " + strings.Join(names, ", ") + ".\n\nThe address contains the workspace, so " +
			"that no header is needed. Servers with an identity provider open a browser for the login. API keys are never written: " +
			"the configuration refers to the environment variable ROPEWALK_API_KEY.",
		Args: cobra.ExactArgs(1), ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, ok := known[args[0]]
			if !ok {
				return cli.Usage(fmt.Errorf("unknown client %q; choose one of %s", args[0], strings.Join(names, ", ")))
			}
			e, advice, err := chosen.resolve(cmd, c, name)
			if err != nil {
				return err
			}
			if advice != "" {
				cmd.PrintErrln(advice)
			}
			if write {
				return chosen.write(cmd, e)
			}
			if c.JSON {
				return chosen.printJSON(cmd, e)
			}
			if chosen.needs != "" {
				cmd.PrintErrln(chosen.needs)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), chosen.steps(e))
			return err
		},
	}
	c.Bind(cmd)
	cmd.Flags().StringVar(&name, "name", "ropewalk", "what the client calls the server")
	cmd.Flags().BoolVar(&write, "write", false, "write it to the client's configuration")
	return cmd
}

// resolve returns the endpoint that the client connects to, with the workspace in its address. advice states what must
// be done first; it may be "".
func (t client) resolve(cmd *cobra.Command, c *cli.Connection, name string) (e endpoint, advice string, err error) {
	client, err := c.Client(cmd.Context())
	if err != nil {
		return endpoint{}, "", err
	}
	path := "/mcp/me"
	if client.Workspace != "" {
		path = "/mcp/" + client.Workspace
	}
	accepts := probe(cmd.Context(), client, path)
	e = endpoint{
		URL: strings.TrimSuffix(cmp.Or(client.Public, client.Server), "/") + path, Name: name,
		Key: client.KeyFrom != "" || accepts.refused && !accepts.login,
	}
	return e, t.advice(accepts, client), nil
}

func (t client) printJSON(cmd *cobra.Command, e endpoint) error {
	if t.entry == nil {
		return cli.PrintJSON(cmd.OutOrStdout(), map[string]string{"url": e.URL})
	}
	key, value := t.entry(e)
	return cli.PrintJSON(cmd.OutOrStdout(), map[string]any{key: map[string]any{e.Name: value}})
}

// remote returns the entry for clients that connect by URL. Type may be "".
func remote(kind string, e endpoint, reference string) map[string]any {
	entry := map[string]any{"url": e.URL}
	if kind != "" {
		entry["type"] = kind
	}
	if e.Key {
		entry["headers"] = map[string]string{"Authorization": "Bearer " + reference}
	}
	return entry
}

// snippet returns the JSON of an entry, indented for reading.
func snippet(key, name string, entry any) string {
	text, err := json.MarshalIndent(map[string]any{key: map[string]any{name: entry}}, "", "  ")
	if err != nil { // impossible: the entry consists of text only
		return ""
	}
	return string(text)
}
