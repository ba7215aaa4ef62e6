package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
)

func pluginListCommand() *cobra.Command {
	var home string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the running server's plugins, or the available ones", Args: cobra.NoArgs,
		Long: "Ask the running server which plugins it has and what state they are in. If no server is running, list what can be " +
			"configured: the built-in adapters and the plugins in <home>/plugins.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := config.FindHome(home, config.HostEnvironment())
			if err != nil {
				return err
			}
			list, err := control.Dial(dir).Plugins(cmd.Context())
			if errors.Is(err, control.ErrNotRunning) {
				cmd.PrintErrf("No server is using the home %s. These adapters and plugins can be configured.\n", dir)
				list, err = available(dir)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), map[string]any{"plugins": list})
			}
			return printPlugins(cmd.OutOrStdout(), list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringVar(&home, "home", "", "service home (default ROPEWALK_HOME, else ~/.ropewalk)")
	return cmd
}

// available returns the built-in adapters and the plugins in a home.
func available(home string) ([]pluginhost.Status, error) {
	var list []pluginhost.Status
	of := builtins()
	for _, kind := range plugins.Kinds() {
		for _, name := range slices.Sorted(maps.Keys(of[kind])) {
			list = append(list, pluginhost.Status{Kind: kind, Name: name, Adapter: name, Version: version, State: "built-in"})
		}
	}
	sums := pluginhost.LockFile{Home: home}
	files, err := sums.Files()
	for _, file := range files {
		kind, _ := pluginhost.KindOf(file)
		name := strings.TrimPrefix(file, string(kind)+"-")
		list = append(list, pluginhost.Status{Kind: kind, Name: name, Adapter: name, Path: filepath.Join(sums.Dir(), file), State: "installed"})
	}
	return list, err
}

func printPlugins(w io.Writer, list []pluginhost.Status) error {
	rows := make([][]string, len(list))
	for i, p := range list {
		pid := ""
		if p.PID != 0 {
			pid = strconv.Itoa(p.PID)
		}
		state := p.State
		if p.Degraded {
			state += " (degraded)"
		}
		rows[i] = []string{
			string(p.Kind), p.Name, p.Adapter, p.Path, p.Version, state, pid, strconv.Itoa(p.Restarts), strconv.FormatUint(p.Calls, 10),
			strconv.FormatUint(p.Failures, 10), seconds(p.P50), seconds(p.P99), megabytes(p.Memory), p.LastErr,
		}
		for j, cell := range rows[i] {
			rows[i][j] = cmp.Or(cell, "-")
		}
	}
	return cli.NewOutput(w).Table([]string{"KIND", "NAME", "ADAPTER", "PATH", "VERSION", "STATE", "PID", "RESTARTS", "CALLS", "ERRORS", "P50", "P99", "MEMORY", "LAST ERROR"}, rows)
}

// seconds formats a duration in seconds; "" for zero.
func seconds(s float64) string {
	if s == 0 {
		return ""
	}
	return time.Duration(s * float64(time.Second)).Round(10 * time.Microsecond).String()
}

func megabytes(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d MB", n>>20)
}
