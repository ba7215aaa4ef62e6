package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
)

func debugCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "debug", Short: "Inspect the running server"}
	cmd.AddCommand(debugProfileCommand())
	return cmd
}

func debugProfileCommand() *cobra.Command {
	var home, out string
	var duration time.Duration
	cmd := &cobra.Command{
		Use: "profile NAME", Short: "Write a profile of the running server to a file", Args: cobra.ExactArgs(1), ValidArgs: control.Profiles(),
		Long: "Write a profile of the running server to a file, for `go tool pprof` (`go tool trace` for the trace profile). " +
			"NAME is one of " + strings.Join(control.Profiles(), ", ") + ".",
		Example: "  ropewalk debug profile cpu --for 30s --out cpu.pprof",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(control.Profiles(), args[0]) {
				return cli.Usage(fmt.Errorf("there is no profile %q; choose one of %s", args[0], strings.Join(control.Profiles(), ", ")))
			}
			dir, err := config.FindHome(home, config.HostEnvironment())
			if err != nil {
				return err
			}
			if out == "" {
				out = args[0] + ".pprof"
			}
			file, err := os.OpenFile(out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if errors.Is(err, fs.ErrExist) {
				return cli.Usage(fmt.Errorf("%s already exists; choose another name with --out, or remove it", out))
			}
			if err != nil {
				return err
			}
			err = control.Dial(dir).Profile(cmd.Context(), args[0], duration, file)
			if err = errors.Join(err, file.Close()); err != nil {
				return errors.Join(notRunning(err, dir), os.Remove(out))
			}
			cli.NewOutput(cmd.OutOrStdout()).Line("Written to %s", out)
			return nil
		},
	}
	cmd.Flags().StringVar(&home, "home", "", "service home of the running server (default ROPEWALK_HOME, else ~/.ropewalk)")
	cmd.Flags().StringVar(&out, "out", "", "file to write, which must not exist (default NAME.pprof)")
	cmd.Flags().DurationVar(&duration, "for", 10*time.Second, "how long cpu and trace are recorded")
	return cmd
}
