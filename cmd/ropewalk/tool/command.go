// Package tool contains the `ropewalk tool` commands: list, show and call the tools of the workspace.
package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/cmd/ropewalk/params"
	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/files"
	"github.com/ropewalk/ropewalk/core/config/schema"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// Command returns `ropewalk tool`.
func Command() *cobra.Command {
	c := &cli.Connection{}
	cmd := &cobra.Command{Use: "tool", Aliases: []string{"tools"}, Short: "List, show and call the tools of the workspace"}
	c.Bind(cmd)
	cmd.AddCommand(
		listCommand(c), showCommand(c), callCommand(c), pinsCommand(c),
		decide(c, "pins", "accept", "Accept the changed definition of a tool", nil, changeDecided),
		decide(c, "pins", "refuse", "Refuse the changed definition of a tool; the tool stays held back", nil, changeDecided),
	)
	return cmd
}

// entry is a tool from GET /v1/tools.
type entry struct {
	Name       string `json:"name"`
	Server     string `json:"server"`
	Tool       string `json:"tool"`
	Definition definition
}

// definition is the part of a tool's definition that the commands use.
type definition struct {
	Title       string
	Description string
	InputSchema params.Schema
}

func listCommand(c *cli.Connection) *cobra.Command {
	var server, search string
	cmd := &cobra.Command{
		Use: "list", Short: "List the tools of the workspace", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{}
			if server != "" {
				query.Set("server", server)
			}
			if search != "" {
				query.Set("search", search)
			}
			return cli.Get(c, cmd, "/v1/tools", query, func(o *cli.Output, r struct{ Tools []entry }) error {
				rows := make([][]string, len(r.Tools))
				for i, t := range r.Tools {
					rows[i] = []string{t.Name, firstLine(t.Definition.Description)}
				}
				return o.Table([]string{"TOOL", "DESCRIPTION"}, rows)
			})
		},
	}
	cmd.Flags().StringVar(&server, "app", "", "list only the tools of this app")
	cmd.Flags().StringVar(&search, "search", "", "list tools whose name or definition contains these words")
	return cmd
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if r := []rune(line); len(r) > 80 {
		return string(r[:79]) + "…"
	}
	return line
}

func showCommand(c *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "show TOOL", Short: "Show a tool's description and parameters", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			raw, t, err := find(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			if c.JSON {
				return cli.PrintJSON(cmd.OutOrStdout(), raw)
			}
			o := cli.NewOutput(cmd.OutOrStdout())
			o.Line("%s\n\n%s\n", o.Text(t.Name), o.Text(strings.TrimSpace(t.Definition.Description)))
			return printParameters(o, t.Definition.InputSchema)
		},
	}
}

func printParameters(o *cli.Output, s params.Schema) error {
	var rows [][]string
	for _, name := range s.Names() {
		need := ""
		if s.Requires(name) {
			need = "required"
		}
		rows = append(rows, []string{"--" + name, s.Properties[name].Kind(), need, firstLine(s.Properties[name].Description)})
	}
	if len(rows) == 0 {
		o.Line("No parameters.")
		return nil
	}
	return o.Table([]string{"PARAMETER", "TYPE", "", "DESCRIPTION"}, rows)
}

// missing returns the error for a tool that is not in listed, perhaps because its app is not
// running.
func missing(ctx context.Context, client *apiclient.Client, name string, listed []entry) error {
	server, _, full := strings.Cut(name, "__")
	var app struct {
		Status, LastError, Auth string
		ToolCount               int
	}
	known := full && client.Get(ctx, "/v1/apps/"+url.PathEscape(server), nil, &app) == nil
	if known && app.Auth == core.AuthUser && app.Status == "running" && !slices.ContainsFunc(listed, func(t entry) bool { return t.Server == server }) {
		return fmt.Errorf("app %q lists its tools only after a login; `ropewalk account link %s` links your account", server, server)
	}
	if known && app.Status != "running" {
		if app.Status == "starting" {
			return &startingError{fmt.Errorf("app %q is %s; try again in a moment; `ropewalk app list` and `ropewalk app logs %s` show its progress", server, app.Status, server)}
		}
		because := ""
		if app.LastError != "" {
			because = ": " + app.LastError
		}
		if strings.Contains(app.LastError, files.ErrChanged.Error()) { // a restart would fail again
			return fmt.Errorf("app %q is %s%s", server, app.Status, because)
		}
		return fmt.Errorf("app %q is %s%s; `ropewalk app start %s` starts it", server, app.Status, because, server)
	}
	err := fmt.Errorf("no running app has a tool %q; `ropewalk tool list` and `ropewalk app list` show what is available", name)
	if near := nearest(name, listed); near != "" {
		err = fmt.Errorf("no running app has a tool %q; did you mean %s?", name, near)
	}
	if known && app.ToolCount > 0 && !slices.ContainsFunc(listed, func(t entry) bool { return t.Server == server }) {
		return &startingError{err} // the list may come from another server, on which the app is starting
	}
	return err
}

// nearest returns the full name of the tool that a full or bare name most likely meant, or "".
func nearest(name string, listed []entry) string {
	full, bare := make([]string, len(listed)), make([]string, len(listed))
	for i, t := range listed {
		full[i], bare[i] = t.Name, t.Tool
	}
	if near := schema.Near(name, full); near != "" {
		return near
	}
	if i := slices.Index(bare, schema.Near(name, bare)); i >= 0 {
		return full[i]
	}
	return ""
}

// startingError is the error for a tool of an app that is starting, at least on one of the servers.
type startingError struct{ error }

// startWait is how long a call waits for its app to start. The server makes calls wait just as long.
const startWait = 10 * time.Second

// await is like find, but waits while the tool's app is starting.
func await(ctx context.Context, client *apiclient.Client, name string) (entry, error) {
	limited, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	tick := time.NewTicker(startWait / 40)
	defer tick.Stop()
	for {
		_, t, err := find(ctx, client, name)
		if _, starting := errors.AsType[*startingError](err); !starting {
			return t, err
		}
		select {
		case <-tick.C:
		case <-limited.Done():
			return entry{}, err
		}
	}
}

// find returns a tool by its full name, or by its bare name if only one app has it.
func find(ctx context.Context, client *apiclient.Client, name string) (json.RawMessage, entry, error) {
	var answer struct{ Tools []json.RawMessage }
	if err := client.Get(ctx, "/v1/tools", nil, &answer); err != nil {
		return nil, entry{}, err
	}
	var bare []json.RawMessage
	var owners []string
	var listed []entry
	for _, raw := range answer.Tools {
		var t entry
		if err := json.Unmarshal(raw, &t); err != nil {
			return nil, entry{}, fmt.Errorf("the response does not match the API: %w", err)
		}
		if t.Name == name {
			return raw, t, nil
		}
		listed = append(listed, t)
		if t.Tool == name {
			bare, owners = append(bare, raw), append(owners, t.Name)
		}
	}
	switch len(bare) {
	case 1:
		var t entry
		err := json.Unmarshal(bare[0], &t)
		return bare[0], t, err
	case 0:
		return nil, entry{}, missing(ctx, client, name, listed)
	}
	return nil, entry{}, fmt.Errorf("several apps have a tool %q; use one of %s", name, strings.Join(owners, ", "))
}
