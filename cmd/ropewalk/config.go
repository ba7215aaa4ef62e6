package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/config/schema"
	"github.com/ropewalk/ropewalk/core/server"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Create, check and show the configuration, and print its schema"}
	cmd.AddCommand(configInitCommand(), configCheckCommand(), configShowCommand(), configSchemaCommand())
	return cmd
}

// template is the configuration that `config init` writes: every common setting, commented out.
//
//go:embed template.yaml
var template []byte

func configInitCommand() *cobra.Command {
	var home string
	cmd := &cobra.Command{
		Use: "init", Short: "Write a commented configuration file to the home, unless there is one", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := config.FindHome(home, config.HostEnvironment())
			if err != nil {
				return err
			}
			if err := config.CreateHome(dir); err != nil {
				return err
			}
			path := filepath.Join(dir, "ropewalk.yaml")
			file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s already exists; edit it, or remove it first", path)
			}
			if err != nil {
				return config.ExplainHome(dir, err)
			}
			if _, err = file.Write(template); errors.Join(err, file.Close()) != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
			return err
		},
	}
	cmd.Flags().StringVar(&home, "home", "", "service home (default ROPEWALK_HOME, else ~/.ropewalk)")
	return cmd
}

func configCheckCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use: "check", Short: "Report every problem in the configuration, without starting the server", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, problems, err := config.Examine(s.options(cmd))
			if err != nil {
				return err
			}
			for _, warning := range c.Warnings {
				cmd.PrintErrln("warning:", warning)
			}
			found, err := server.Check(cmd.Context(), c, builtins(), hclog.NewNullLogger())
			for _, p := range found.Replaced {
				cmd.PrintErrln("warning:", p)
			}
			if err := withAdapters(problems, err); err != nil {
				return err
			}
			for _, section := range found.Unchecked {
				cmd.PrintErrf("%s: settings not checked, because the adapter can check them only when it starts\n", section)
			}
			file := c.File
			if file == "" {
				file = "no file, the defaults"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "configuration ok (%s)\n", file)
			return err
		},
	}
	s.bind(cmd)
	s.bindListener(cmd)
	return cmd
}

// withAdapters adds the adapters' problems with their settings (from server.Check) to the problems in the
// configuration. It skips settings that were already rejected, because the adapters saw their defaults instead.
func withAdapters(problems config.Problems, err error) error {
	found, _ := errors.AsType[config.Problems](err)
	all := problems
	for _, p := range found {
		if !slices.ContainsFunc(problems, func(q config.Problem) bool { return within(p.Path, q.Path) || within(q.Path, p.Path) }) {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all.Sorted()
}

// within reports whether one path is equal to another or inside it.
func within(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func configShowCommand() *cobra.Command {
	var s settings
	var asJSON, all bool
	cmd := &cobra.Command{
		Use: "show", Short: "Show the effective settings and where each comes from; secrets are redacted", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, unset, err := s.inspect(cmd)
			if err != nil {
				return err
			}
			for _, p := range unset {
				cmd.PrintErrf("warning: %s here; the server needs it in its environment\n", p)
			}
			var shown []config.Value
			for _, v := range c.Effective() {
				if all || v.Source != "default" {
					shown = append(shown, v)
				}
			}
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), map[string]any{"home": c.Home, "file": c.File, "settings": shown})
			}
			if len(shown) == 0 {
				cmd.PrintErrln("Every setting has its default value; --all lists them.")
				return nil
			}
			rows := make([][]string, len(shown))
			for i, v := range shown {
				rows[i] = []string{v.Path, fmt.Sprint(v.Value), v.Source}
			}
			return cli.NewOutput(cmd.OutOrStdout()).Table([]string{"SETTING", "VALUE", "SOURCE"}, rows)
		},
	}
	s.bind(cmd)
	s.bindListener(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "also list settings that have their default value")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func configSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of the configuration, for editors", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := schema.New(adapterSchemas())
			if err != nil {
				return err
			}
			text, err := s.JSON()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), string(text))
			return err
		},
	}
}
