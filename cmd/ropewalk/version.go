package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core/store/migrations"
)

// The build sets these. If it does not set commit and date, the ones that Go recorded from the repository are used.
var (
	version      = "dev"
	commit, date string //nolint:gochecknoglobals // the linker can only set global variables
)

// build describes the executable.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	Schema  int64  `json:"schema"` // version of the database schema
}

func buildInfo() build {
	b := build{Version: version, Commit: commit, Date: date, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Schema: migrations.Latest()}
	info, ok := debug.ReadBuildInfo()
	if !ok || commit != "" {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		}
	}
	return b
}

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version, the commit, its date and the version of Go", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := buildInfo()
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), b)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "ropewalk %s (commit %s, %s, %s, %s/%s)\n", b.Version, orUnknown(b.Commit), orUnknown(b.Date), b.Go, b.OS, b.Arch)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

// manCommand returns the command that writes the manual pages for packages.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIRECTORY", Short: "Write the manual pages into a directory", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			header := &doc.GenManHeader{Title: "ROPEWALK", Section: "1", Source: "ropewalk " + version, Manual: "Ropewalk"}
			cmd.Root().DisableAutoGenTag = true
			return doc.GenManTree(cmd.Root(), header, args[0])
		},
	}
}
