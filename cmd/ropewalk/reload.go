package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
)

func reloadCommand() *cobra.Command {
	var home string
	cmd := &cobra.Command{
		Use: "reload", Short: "Have the running server read its configuration again", Args: cobra.NoArgs,
		Long: "Has the running server read its configuration again. Changed adapters are started and checked before they are " +
			"put into force; when something does not pass, everything stays as it was and the reason is printed.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := config.FindHome(home, config.HostEnvironment())
			if err != nil {
				return err
			}
			done, err := control.Dial(dir).Reload(cmd.Context())
			if err != nil {
				return err
			}
			switch {
			case len(done.Changed)+len(done.Restart) == 0:
				cmd.Println("Nothing has changed.")
			case len(done.Changed) > 0:
				cmd.Println("Now in force:", strings.Join(done.Changed, ", "))
			}
			if len(done.Restart) > 0 {
				cmd.Println("Takes a new start of the server:", strings.Join(done.Restart, ", "))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&home, "home", "", "service home of the running server (default ROPEWALK_HOME, else ~/.ropewalk)")
	return cmd
}
