package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/installed"
	"github.com/ropewalk/ropewalk/plugins"
	pluginserver "github.com/ropewalk/ropewalk/plugins/server"
)

func pluginCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "plugin", Short: "Install, inspect, test and write plugins"}
	cmd.AddCommand(
		pluginListCommand(), pluginInfoCommand(), pluginTestCommand(), pluginInitCommand(), pluginProtoCommand(), pluginAttachCommand(), pluginServeCommand(),
	)
	cmd.AddCommand(installed.Options{Builtins: builtins(), Inspect: inspectFrom}.Commands()...)
	return cmd
}

// pluginServeCommand runs a built-in adapter. The server starts it as a child of the same executable, over the
// same contract as any other plugin.
func pluginServeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "serve KIND NAME", Short: "Run a built-in adapter (used by the server)", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			builtin, ok := builtins()[plugins.Kind(args[0])][args[1]]
			if !ok {
				return fmt.Errorf("there is no built-in %s adapter %q", args[0], args[1])
			}
			pluginserver.Serve(builtin())
			return nil
		},
	}
}
