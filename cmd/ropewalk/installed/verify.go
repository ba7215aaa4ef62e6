package installed

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
)

func (o Options) verifyCommand() *cobra.Command {
	var at place
	var accept []string
	cmd := &cobra.Command{
		Use: "verify", Short: "Check plugins against their recorded sha256", Args: cobra.NoArgs,
		Long: "Compare every plugin in <home>/plugins with the sha256 that <home>/plugins.lock recorded at its first " +
			"use, and every plugin that the configuration specifies by path with the sha256 given there. The exit status is 1 " +
			"if one has changed or is missing, or is unsigned although plugins.requireSignature is set. --accept NAME " +
			"records the current sha256 of the named plugin, or removes the record if the file is gone.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := at.dir()
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
			configured, invalid := o.configured(at) // a missing plugin makes a configuration invalid, and must still be listed
			if invalid == nil {
				if all, err = withConfigured(all, configured); err != nil {
					return err
				}
			}
			settings, err := config.LoadPlugins(config.Options{Path: at.file, Home: at.home, Environment: config.HostEnvironment()})
			return errors.Join(printSums(cmd, all, settings, pluginhost.LockFile{Home: home}.Dir()), invalid, err)
		},
	}
	at.bind(cmd)
	cmd.Flags().StringSliceVar(&accept, "accept", nil, "name of a plugin in <home>/plugins to accept with its current sha256, such as auth-okta")
	return cmd
}

// acceptPlugin records the sum of a file in <home>/plugins, whose name `plugin verify` prints.
func acceptPlugin(cmd *cobra.Command, sums pluginhost.LockFile, name string) error {
	name = sums.FileOf(name)
	if _, ok := pluginhost.KindOf(name); !ok || name != filepath.Base(name) {
		return fmt.Errorf("--accept %s: specify the name of a file in %s, such as auth-okta", name, sums.Dir())
	}
	remembered, err := sums.Read()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(sums.Dir(), name)); errors.Is(err, fs.ErrNotExist) && remembered[name].SHA256 != "" {
		cmd.PrintErrf("%s no longer exists; its record was removed.\n", name)
		return sums.Forget(name)
	}
	sum, err := sums.Accept(name)
	if err == nil {
		cmd.PrintErrf("%s has been accepted with the sha256 %s.\n", name, sum)
	}
	return err
}

// withConfigured adds the plugins that the configuration specifies by path.
func withConfigured(all []pluginhost.Sum, configured []pluginhost.Configured) ([]pluginhost.Sum, error) {
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

func printSums(cmd *cobra.Command, all []pluginhost.Sum, settings config.Plugins, home string) error {
	var rows [][]string
	bad, unsigned := 0, 0
	for _, s := range all {
		match := string(s.Match())
		switch s.Match() {
		case pluginhost.MatchChanged, pluginhost.MatchMissing:
			bad++
		case pluginhost.MatchOK, pluginhost.MatchUnknown:
			if settings.RequireSignature && filepath.Dir(s.Path) == home && !slices.Contains(settings.TrustedKeys, s.Record.Signer) {
				match = "unsigned"
				unsigned++
			}
		}
		row := []string{s.Path, match, s.Now, s.Want, s.Record.Version, s.Record.Signer, s.Record.Source}
		for i, cell := range row {
			row[i] = cmp.Or(cell, "-")
		}
		rows = append(rows, row)
	}
	if len(all) == 0 {
		cmd.PrintErrf("There are no plugins in %s, and the configuration specifies none by path.\n", home)
		return nil
	}
	header := []string{"PLUGIN", "IS", "SHA256", "MUST BE", "VERSION", "SIGNER", "SOURCE"}
	if err := cli.NewOutput(cmd.OutOrStdout()).Table(header, rows); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d plugins are missing or were changed; restore the originals or, if the change was intended, run `ropewalk plugin verify --accept NAME` for a plugin in <home>/plugins, and correct sha256 for one that the configuration specifies by path", bad, len(all))
	}
	if unsigned > 0 {
		return fmt.Errorf("%d of %d plugins have no signature from a key in plugins.trustedKeys; install them with `ropewalk plugin install`", unsigned, len(all))
	}
	return nil
}
