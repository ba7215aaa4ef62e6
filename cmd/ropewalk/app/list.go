package app

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core"
)

// entry is the part of an app's description that the commands show (docs/api.md 3.1).
type entry struct {
	Name       string
	BundleName string
	Version    string
	Status     string
	Asleep     bool
	ToolCount  int
	LastError  string

	Permissions core.AppPermissions
}

func listCommand(c *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the installed apps of the workspace", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Get(c, cmd, "/v1/apps", nil, func(o *cli.Output, r struct{ Apps []entry }) error {
				if len(r.Apps) == 0 {
					cmd.PrintErrln("No app is installed; `ropewalk app install` adds one.")
					return nil
				}
				rows := make([][]string, len(r.Apps))
				for i, a := range r.Apps {
					if a.LastError != "" {
						cmd.PrintErrf("%s is %s: %s\n", a.Name, a.Status, cli.Printable(a.LastError))
					}
					rows[i] = []string{a.Name, a.statusText(), strconv.Itoa(a.ToolCount), a.Version, a.BundleName}
				}
				return o.Table([]string{"NAME", "STATUS", "TOOLS", "VERSION", "BUNDLE"}, rows)
			})
		},
	}
}

// statusText returns the status for tables.
func (a entry) statusText() string {
	if a.Asleep {
		return a.Status + " (asleep)"
	}
	return a.Status
}

// shorten truncates a string to the width of a table cell.
func shorten(text string, limit int) string {
	if r := []rune(text); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return text
}
