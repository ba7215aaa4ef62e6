// Package contexts contains `ropewalk context`: names for servers, so that --server is not needed.
package contexts

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

// Command returns `ropewalk context`.
func Command() *cobra.Command {
	cmd := &cobra.Command{Use: "context", Aliases: []string{"contexts"}, Short: "Name servers, and choose the one that commands use"}
	cmd.AddCommand(listCommand(), setCommand(), useCommand(), removeCommand())
	return cmd
}

func listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the contexts; * marks the current one", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := cli.LoadContexts()
			if err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), all)
			}
			var rows [][]string
			for _, name := range slices.Sorted(maps.Keys(all.Contexts)) {
				mark, c := "", all.Contexts[name]
				if name == all.Current {
					mark = "*"
				}
				rows = append(rows, []string{mark, name, c.Server, c.Workspace})
			}
			if len(rows) == 0 {
				cmd.PrintErrln("There are no contexts; `ropewalk context set NAME --server URL` creates one.")
				return nil
			}
			return cli.NewOutput(cmd.OutOrStdout()).Table([]string{"", "NAME", "SERVER", "WORKSPACE"}, rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON; keys are left out")
	return cmd
}

func setCommand() *cobra.Command {
	var c cli.Context
	var withKey bool
	cmd := &cobra.Command{
		Use: "set NAME [--server URL]", Short: "Create or change a context, and make it the current one", Args: cobra.ExactArgs(1),
		Long: "Create or change a context, and make it the current one. If its server changes, its key and login are dropped. --key reads " +
			"an API key from standard input, or from the terminal without showing it. Only you can read the file with the contexts.",
		Example: "  ropewalk context set work --server https://tools.example.com --key",
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := cli.LoadContexts()
			if err != nil {
				return err
			}
			next := all.Contexts[args[0]]
			if server := cli.ServerAddress(c.Server); server != "" && server != next.Server {
				next.Server, next.Key = server, ""
				next.ForgetLogin() // credentials are for one server only
			}
			if c.Workspace != "" {
				next.Workspace = c.Workspace
			}
			if withKey {
				if next.Key, err = cli.ReadKey(cmd); err != nil {
					return err
				}
			}
			if next.Server == "" {
				return cli.Usage(errors.New("a new context needs the address of its server: --server https://tools.example.com"))
			}
			all.Contexts[args[0]], all.Current = next, args[0]
			return save(cmd, all)
		},
	}
	cmd.Flags().StringVar(&c.Server, "server", "", "address of the server")
	cmd.Flags().StringVar(&c.Workspace, "workspace", "", "workspace id")
	cmd.Flags().BoolVar(&withKey, "key", false, "ask for an API key")
	return cmd
}

// save writes the contexts and prints which server commands now use.
func save(cmd *cobra.Command, all cli.Contexts) error {
	if err := all.Save(); err != nil {
		return err
	}
	if all.Current == "" {
		cmd.PrintErrln("Commands now use the server on this machine.")
		return nil
	}
	cmd.PrintErrf("Commands now use the context %s: %s\n", cli.Printable(all.Current), cli.Printable(all.Contexts[all.Current].Server))
	return nil
}

func useCommand() *cobra.Command {
	return &cobra.Command{
		Use: "use NAME", Short: "Make a context the current one; \"\" is the server on this machine", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := cli.LoadContexts()
			if err != nil {
				return err
			}
			if _, ok := all.Contexts[args[0]]; !ok && args[0] != "" {
				return fmt.Errorf("there is no context %q; `ropewalk context list` shows them", args[0])
			}
			all.Current = args[0]
			return save(cmd, all)
		},
	}
}

func removeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Remove a context", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := cli.LoadContexts()
			if err != nil {
				return err
			}
			old, ok := all.Contexts[args[0]]
			if !ok {
				return fmt.Errorf("there is no context %q; `ropewalk context list` shows them", args[0])
			}
			old.ForgetLogin()
			delete(all.Contexts, args[0])
			if all.Current == args[0] {
				all.Current = ""
			}
			return save(cmd, all)
		},
	}
}
