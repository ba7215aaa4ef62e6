package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
)

func reloadCommand() *cobra.Command {
	var home string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "reload", Short: "Apply a changed configuration to the running server", Args: cobra.NoArgs,
		Long: "Apply a changed configuration to the running server. Changed adapters are started and checked first; when something " +
			"does not pass, nothing changes and the reason is printed. The exit status is 3 when a change takes a restart.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := config.FindHome(home, config.HostEnvironment())
			if err != nil {
				return err
			}
			done, err := control.Dial(dir).Reload(cmd.Context())
			if err != nil {
				return notRunning(err, dir)
			}
			if asJSON {
				if err := cli.PrintJSON(cmd.OutOrStdout(), done); err != nil {
					return err
				}
			} else {
				printReload(cmd, done)
			}
			if len(done.Restart) > 0 {
				return cli.Restart(fmt.Errorf("restart the server to apply %s", strings.Join(done.Restart, ", ")))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&home, "home", "", "service home of the running server (default ROPEWALK_HOME, else ~/.ropewalk)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printReload(cmd *cobra.Command, done control.Reloaded) {
	o := cli.NewOutput(cmd.OutOrStdout())
	switch {
	case len(done.Changed)+len(done.Restart) == 0:
		o.Line("No change.")
	case len(done.Changed) > 0:
		o.Line("Applied: %s", strings.Join(done.Changed, ", "))
	}
}
