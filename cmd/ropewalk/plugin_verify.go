package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
)

func pluginVerifyCommand() *cobra.Command {
	var s settings
	var accept []string
	cmd := &cobra.Command{
		Use: "verify", Short: "Compare plugins with the sha256 they must have", Args: cobra.NoArgs,
		Long: "Compares every plugin in <home>/plugins with the sha256 that <home>/plugins.lock has of its first use, and every " +
			"plugin that the configuration names by path with the sha256 it gives. The status is 1 when one has changed or is " +
			"missing. --accept NAME records the present sha256 of the named plugin, or removes the record when its file is gone.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := config.FindHome(s.home, config.HostEnvironment())
			if err != nil {
				return err
			}
			sums := pluginhost.LockFile{Home: home}
			for _, name := range accept {
				if err := acceptPlugin(cmd, sums, name); err != nil {
					return err
				}
			}
			all, err := sums.All()
			if err != nil {
				return err
			}
			c, wrong := s.load(cmd) // a plugin that is gone makes a configuration wrong, and is to be seen all the same
			if wrong == nil {
				if all, err = withConfigured(all, c); err != nil {
					return err
				}
			}
			return errors.Join(printSums(cmd, all), wrong)
		},
	}
	s.bind(cmd)
	cmd.Flags().StringSliceVar(&accept, "accept", nil, "name of a plugin in <home>/plugins whose present sha256 is right, such as auth-okta")
	return cmd
}

// acceptPlugin takes the name of a file in <home>/plugins, as `plugin verify` prints it.
func acceptPlugin(cmd *cobra.Command, sums pluginhost.LockFile, name string) error {
	if _, ok := pluginhost.KindOf(name); !ok || name != filepath.Base(name) {
		return fmt.Errorf("--accept %s: give the name of a file in %s, such as auth-okta", name, sums.Dir())
	}
	remembered, err := sums.Read()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(sums.Dir(), name)); errors.Is(err, fs.ErrNotExist) && remembered[name] != "" {
		cmd.PrintErrf("%s is gone and is forgotten.\n", name)
		return sums.Forget(name)
	}
	sum, err := sums.Accept(name)
	if err == nil {
		cmd.PrintErrf("%s is accepted with the sha256 %s.\n", name, sum)
	}
	return err
}

// withConfigured adds the plugins that the configuration names by path.
func withConfigured(all []pluginhost.Sum, c *config.Config) ([]pluginhost.Sum, error) {
	configured := []config.Plugin{c.SessionStore}
	for _, a := range c.Auth {
		configured = append(configured, a.Plugin)
	}
	for _, r := range c.Registries {
		configured = append(configured, r.Plugin)
	}
	for _, p := range configured {
		if p.Path == "" {
			continue
		}
		sum, err := pluginhost.SumOf(p.Path, p.SHA256)
		if err != nil {
			return nil, fmt.Errorf("%s.path: %w", p.At, err)
		}
		all = append(all, sum)
	}
	return all, nil
}

func printSums(cmd *cobra.Command, all []pluginhost.Sum) error {
	table := newTable(cmd.OutOrStdout(), "PLUGIN", "IS", "SHA256", "MUST BE")
	bad := 0
	for _, s := range all {
		match := s.Match()
		if match == pluginhost.MatchChanged || match == pluginhost.MatchMissing {
			bad++
		}
		table.row(s.Path, string(match), s.Now, s.Want)
	}
	if err := table.w.Flush(); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d plugins are not what they must be; if you changed one in <home>/plugins, run `ropewalk plugin verify --accept NAME`", bad, len(all))
	}
	return nil
}
