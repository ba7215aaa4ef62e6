package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
)

func logCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "log", Short: "Change what the running server logs"}
	cmd.AddCommand(logLevelCommand())
	return cmd
}

func logLevelCommand() *cobra.Command {
	var home string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "level [COMPONENT=LEVEL]...", Short: "Show or change the levels of the running server's log",
		Long: "Show the levels of the running server's log, or change them until its next start. A component is the " +
			"name that log lines show after \"ropewalk.\", such as apps, chat or plugin; \"default\" stands for every other " +
			"one. A level is trace, debug, info, warn, error or off. COMPONENT= without a level removes the " +
			"component's own level.",
		Example: "  ropewalk log level apps=debug chat=warn\n  ropewalk log level apps=",
		RunE: func(cmd *cobra.Command, args []string) error {
			change := map[string]string{}
			for _, arg := range args {
				component, level, found := strings.Cut(arg, "=")
				if !found || component == "" {
					return cli.Usage(fmt.Errorf("%q must be COMPONENT=LEVEL, such as apps=debug, or default=debug for all components that have no level of their own", arg))
				}
				change[component] = level
			}
			dir, err := config.FindHome(home, config.HostEnvironment())
			if err != nil {
				return err
			}
			levels, err := control.Dial(dir).LogLevels(cmd.Context(), change)
			if err != nil {
				return notRunning(err, dir)
			}
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), levels)
			}
			o := cli.NewOutput(cmd.OutOrStdout())
			for _, component := range slices.Sorted(maps.Keys(levels)) {
				o.Line("%s=%s", component, levels[component])
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&home, "home", "", "service home of the running server (default ROPEWALK_HOME, else ~/.ropewalk)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// notRunning adds the home to the error if no server is using it.
func notRunning(err error, home string) error {
	if errors.Is(err, control.ErrNotRunning) {
		return fmt.Errorf("no server is using the home %s; choose another one with --home or ROPEWALK_HOME", home)
	}
	return err
}
