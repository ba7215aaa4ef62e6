package app

import (
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

// entry is what the commands show of an app (docs/api.md 3.1).
type entry struct {
	Name       string
	BundleName string
	Version    string
	Status     string
	ToolCount  int
	LastError  string
}

func listCommand(c *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the installed apps of the workspace", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			var answer json.RawMessage
			if err := client.Get(cmd.Context(), "/v1/apps", nil, &answer); err != nil {
				return err
			}
			return cli.Print(c, cmd, answer, func(o *cli.Output, r struct{ Apps []entry }) error {
				if len(r.Apps) == 0 {
					cmd.PrintErrln("No app is installed; `ropewalk app install` adds one.")
				}
				rows := make([][]string, len(r.Apps))
				for i, a := range r.Apps {
					if a.LastError != "" {
						cmd.PrintErrf("%s is %s: %s\n", a.Name, a.Status, cli.Printable(a.LastError))
					}
					rows[i] = []string{a.Name, a.Status, strconv.Itoa(a.ToolCount), a.Version, a.BundleName}
				}
				return o.Table([]string{"NAME", "STATUS", "TOOLS", "VERSION", "BUNDLE"}, rows)
			})
		},
	}
}

func searchCommand(c *cli.Connection) *cobra.Command {
	var limit int
	var registry string
	cmd := &cobra.Command{
		Use: "search WORDS", Short: "Search the configured registries for bundles", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			query := url.Values{"query": {args[0]}, "limit": {strconv.Itoa(limit)}}
			if registry != "" {
				query.Set("registry", registry)
			}
			var answer json.RawMessage
			if err := client.Get(cmd.Context(), "/v1/registries/search", query, &answer); err != nil {
				return err
			}
			return cli.Print(c, cmd, answer, printBundles(cmd))
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "how many bundles at most")
	cmd.Flags().StringVar(&registry, "registry", "", "search this registry only")
	return cmd
}

// bundles is what a search of the registries found.
type bundles struct {
	Bundles []struct {
		Name, Version, Description, Registry string
		TrustScore                           int
	}
	Failures []string
}

// printBundles prints what a search found. A registry that failed is not an error of the others.
func printBundles(cmd *cobra.Command) func(*cli.Output, bundles) error {
	return func(o *cli.Output, r bundles) error {
		for _, f := range r.Failures {
			cmd.PrintErrln("warning:", cli.Printable(f))
		}
		if len(r.Bundles) == 0 {
			cmd.PrintErrln("No bundle was found. Names are looked up in the registries of the configuration (`registries`).")
		}
		rows := make([][]string, len(r.Bundles))
		for i, b := range r.Bundles {
			rows[i] = []string{b.Name, b.Version, b.Registry, strconv.Itoa(b.TrustScore), shorten(b.Description, 60)}
		}
		return o.Table([]string{"NAME", "VERSION", "REGISTRY", "TRUST", "DESCRIPTION"}, rows)
	}
}

// shorten cuts a text to the length of a table cell.
func shorten(text string, limit int) string {
	if r := []rune(text); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return text
}
