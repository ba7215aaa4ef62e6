package main

import (
	"fmt"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
	"github.com/ropewalk/ropewalk/plugins"
)

func pluginAttachCommand() *cobra.Command {
	var home, name string
	cmd := &cobra.Command{
		Use: "attach KIND LINE", Short: "Let a plugin in a debugger serve the running server", Args: cobra.ExactArgs(2),
		Long: "Let a plugin in a debugger serve the running server, without time limits, until this command is " +
			"interrupted. Start the plugin with ROPEWALK_PLUGIN=KIND in its environment; LINE is the handshake line " +
			"that it prints, or the path of the unix socket in that line. The attached plugin gets the settings of the " +
			"configured plugin that it replaces. The configured plugin's own process keeps running, and takes over " +
			"again when the attached plugin or this command exits.",
		Example: "  ROPEWALK_PLUGIN=sessionstore dlv debug .   # in another terminal\n" +
			"  ropewalk plugin attach sessionstore '1|1|unix|/tmp/plugin123|grpc|'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(plugins.Kinds(), plugins.Kind(args[0])) {
				return cli.Usage(fmt.Errorf("unknown kind %q; it must be %s", args[0], kindNames()))
			}
			socket, err := socketOf(args[1])
			if err != nil {
				return cli.Usage(err)
			}
			dir, err := config.FindHome(home, config.HostEnvironment())
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			out := cli.NewOutput(cmd.OutOrStdout())
			err = control.Dial(dir).Attach(ctx, control.Attach{Kind: args[0], Name: name, Socket: socket}, func(p control.Attached) {
				out.Line("Attached %s %s %s. Interrupt this command to detach it.", args[0], p.Name, p.Version)
			})
			if err == nil || ctx.Err() != nil {
				out.Line("Detached.")
				return nil
			}
			return notRunning(err, dir)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "plugin to replace, if several of its kind are configured")
	cmd.Flags().StringVar(&home, "home", "", "service home of the running server (default ROPEWALK_HOME, else ~/.ropewalk)")
	return cmd
}

// socketOf returns the Unix socket in a handshake line, or at a path.
func socketOf(line string) (string, error) {
	line = strings.TrimSpace(line)
	if filepath.IsAbs(line) {
		return line, nil
	}
	fields := strings.Split(line, "|")
	switch {
	case len(fields) < 5 || fields[0] != "1" || fields[4] != "grpc":
		return "", fmt.Errorf("%q is neither a handshake line nor an absolute path; the plugin prints a line such as 1|1|unix|/tmp/plugin123|grpc|", line)
	case fields[1] != "1":
		return "", fmt.Errorf("the plugin uses protocol version %s, but this server uses version 1", fields[1])
	case fields[2] != "unix" || !filepath.IsAbs(fields[3]):
		return "", fmt.Errorf("the plugin listens on %s %s; it must listen on a unix socket with an absolute path", fields[2], fields[3])
	case len(fields) > 5 && fields[5] != "":
		return "", fmt.Errorf("the plugin serves TLS; start it without PLUGIN_CLIENT_CERT")
	}
	return fields[3], nil
}
