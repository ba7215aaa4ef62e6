package app

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

// Command returns `ropewalk app`.
func Command() *cobra.Command {
	c := &cli.Connection{}
	cmd := &cobra.Command{Use: "app", Aliases: []string{"apps"}, Short: "Install, list, operate and uninstall apps"}
	c.Bind(cmd)
	cmd.AddCommand(
		listCommand(c), showCommand(c), searchCommand(c), installCommand(c), importCommand(c), configureCommand(c), updateCommand(c), uninstallCommand(c),
		operation(c, "start", "Start a stopped or dead app"),
		operation(c, "stop", "Stop an app; it stays installed"),
		operation(c, "restart", "Restart an app"),
		logsCommand(c),
	)
	return cmd
}

func appPath(name string) string { return "/v1/apps/" + url.PathEscape(name) }

// operation is a command that only posts to a path of an app.
func operation(c *cli.Connection, verb, short string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			var answer json.RawMessage
			if err := client.Do(cmd.Context(), http.MethodPost, appPath(args[0])+"/"+verb, nil, &answer); err != nil {
				return err
			}
			return cli.Print(c, cmd, answer, func(o *cli.Output, s struct{ Name, Status string }) error {
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
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			var answer json.RawMessage
			if err := client.Do(cmd.Context(), http.MethodDelete, appPath(args[0]), nil, &answer); err != nil {
				return err
			}
			return cli.Print(c, cmd, answer, func(o *cli.Output, r struct{ Name, DataPath string }) error {
				o.Line("%s was uninstalled; its data is in %s", r.Name, r.DataPath)
				return nil
			})
		},
	}
}
