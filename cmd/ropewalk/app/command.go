package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core/config/schema"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// Command returns `ropewalk app`.
func Command() *cobra.Command {
	c := &cli.Connection{}
	cmd := &cobra.Command{Use: "app", Aliases: []string{"apps"}, Short: "Install, list, operate and uninstall apps"}
	c.Bind(cmd)
	cmd.AddCommand(
		listCommand(c), showCommand(c), searchCommand(c), installCommand(c), importCommand(c), configureCommand(c), updateCommand(c), uninstallCommand(c),
		operation(c, "restore", "Undo an uninstall (possible for one minute)"),
		operation(c, "start", "Start a stopped or dead app"),
		operation(c, "stop", "Stop an app; it stays installed"),
		operation(c, "restart", "Restart an app"),
		logsCommand(c),
		permissionsCommand(c), allowCommand(c), denyCommand(c), revokeCommand(c),
	)
	return cmd
}

func appPath(name string) string { return "/v1/apps/" + url.PathEscape(name) }

// named adds the most similar installed name to the error for an app that is not installed.
func named(ctx context.Context, client *apiclient.Client, name string, err error) error {
	var installed struct{ Apps []entry }
	if !apiclient.IsCode(err, "not_found") || client.Get(ctx, "/v1/apps", nil, &installed) != nil {
		return err
	}
	names := make([]string, len(installed.Apps))
	for i, a := range installed.Apps {
		names[i] = a.Name
	}
	if slices.Contains(names, name) {
		return err // something other than the app was not found
	}
	if near := schema.Near(name, names); near != "" {
		return fmt.Errorf("%w; did you mean %s?", err, near)
	}
	return fmt.Errorf("%w; `ropewalk app list` shows what is installed", err)
}

// do makes a request to one of an app's paths and prints the response.
func do[T any](c *cli.Connection, cmd *cobra.Command, method, name, path string, body any, render func(*cli.Output, T) error) error {
	client, err := c.Client(cmd.Context())
	if err != nil {
		return err
	}
	var response json.RawMessage
	if err := client.Do(cmd.Context(), method, appPath(name)+path, body, &response); err != nil {
		return named(cmd.Context(), client, name, err)
	}
	return cli.Print(c, cmd, response, render)
}

// operation returns a command that only sends a POST request to one of an app's paths.
func operation(c *cli.Connection, verb, short string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return do(c, cmd, http.MethodPost, args[0], "/"+verb, nil, func(o *cli.Output, s struct{ Name, Status string }) error {
				o.Line("%s is %s", s.Name, o.State(s.Status))
				return nil
			})
		},
	}
}

func uninstallCommand(c *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "uninstall NAME", Aliases: []string{"remove"}, Short: "Uninstall an app; its data stays on disk", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return do(c, cmd, http.MethodDelete, args[0], "", nil, func(o *cli.Output, r struct{ Name, DataPath string }) error {
				o.Line("%s was uninstalled; its data is in %s", r.Name, r.DataPath)
				o.Line("To undo this within a minute: ropewalk app restore %s", r.Name)
				return nil
			})
		},
	}
}
