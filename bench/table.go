package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/bench/rival"
	"github.com/ropewalk/ropewalk/bench/table"
)

func tableCommand() *cobra.Command {
	var o table.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use: "table --service PATH", Short: "Measure every figure and compare it with the rivals, in one run", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Self, err = os.Executable(); err != nil {
				return err
			}
			o.Log = cmd.ErrOrStderr()
			rows, err := table.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			return printTable(cmd.OutOrStdout(), rows, asJSON)
		},
	}
	cmd.Flags().StringVar(&o.Service, "service", "bin/ropewalk", "the server's executable")
	cmd.Flags().StringVar(&o.Against, "against", "", "another build of the server to compare with, such as the parent commit's; each row gets a ratio to it")
	cmd.Flags().BoolVar(&o.Quick, "quick", false, "fewer and shorter rounds, to check that everything works; not for published figures")
	cmd.Flags().StringSliceVar(&o.Only, "only", nil, "the parts to measure: "+strings.Join(table.Parts(), ", ")+" (default all)")
	cmd.Flags().StringVar(&o.Dir, "dir", "", "the directory in which to create the service's homes (default the system's temporary directory)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printTable(out io.Writer, rows []table.Row, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(rows)
	}
	return table.Print(out, rows)
}

// rivalCommand returns the command that runs the other servers that the table starts.
func rivalCommand() *cobra.Command {
	var tools, deltas int
	var every time.Duration
	cmd := &cobra.Command{Use: "rival", Short: "Run one of the servers or bundles that the table needs", Hidden: true}
	many := func(c *cobra.Command) *cobra.Command {
		c.Flags().IntVar(&tools, "tools", 1, "number of tools")
		return c
	}
	model := &cobra.Command{Use: "model", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		return rival.Model(c.Context(), deltas, every, c.OutOrStdout())
	}}
	model.Flags().IntVar(&deltas, "deltas", 100, "number of pieces in a response")
	model.Flags().DurationVar(&every, "every", 5*time.Millisecond, "interval between two pieces")
	cmd.AddCommand(
		model,
		many(&cobra.Command{Use: "bundle", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
			return rival.Bundle(c.Context(), tools)
		}}),
		&cobra.Command{Use: "light", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
			return rival.Light(c.InOrStdin(), c.OutOrStdout())
		}},
		many(&cobra.Command{Use: "direct", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
			return rival.Direct(c.Context(), tools, c.OutOrStdout())
		}}),
		before("gateway", rival.Gateway),
		before("relay", rival.Relay),
	)
	return cmd
}

// before returns the command that runs a rival in front of a bundle, which is this executable with the given arguments.
func before(name string, run bundleServer) *cobra.Command {
	return &cobra.Command{
		Use: name, Args: cobra.MinimumNArgs(1), DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this executable: %w", err)
			}
			return run(c.Context(), append([]string{self}, args...), c.OutOrStdout())
		},
	}
}

type bundleServer func(ctx context.Context, bundle []string, out io.Writer) error
