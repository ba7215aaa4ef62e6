package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core/config/schema"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// maxFound is the maximum number of bundles that one search returns.
const maxFound = 100

// search is one run of `app search`.
type search struct {
	words    string
	registry string // "" for all
	limit    int
}

// bundles is the result of searching the registries.
type bundles struct {
	Bundles []struct {
		Name, Version, Description, Registry string
		TrustScore                           int
	}
	Failures []string
}

func searchCommand(c *cli.Connection) *cobra.Command {
	var s search
	cmd := &cobra.Command{
		Use: "search [WORDS]", Short: "Search the configured registries for bundles", Args: cobra.ArbitraryArgs,
		Long: "Search the configured registries for bundles, by their names and descriptions. Without words, every " +
			"bundle is listed, up to --limit.\n\nTRUST is the score, 0 to 100, that the registry assigns to the bundle, or " +
			"- if it assigns none. A registry with the directory adapter assigns the configured trustScore to all its bundles.",
		Example: "  ropewalk app search files\n  ropewalk app search --registry official --limit 100",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			s.words = strings.Join(args, " ")
			var answer json.RawMessage
			asked := s
			if !c.JSON && s.limit > 0 && s.limit < maxFound {
				asked.limit++ // one more than is printed, to find out whether there are more
			}
			if err := client.Get(cmd.Context(), "/v1/registries/search", asked.query(), &answer); err != nil {
				return err
			}
			return cli.Print(c, cmd, answer, func(o *cli.Output, r bundles) error { return s.print(cmd, client, o, r) })
		},
	}
	cmd.Flags().IntVar(&s.limit, "limit", 20, "maximum number of bundles, up to 100")
	cmd.Flags().StringVar(&s.registry, "registry", "", "search only this registry")
	return cmd
}

func (s search) query() url.Values {
	query := url.Values{"query": {s.words}, "limit": {strconv.Itoa(s.limit)}}
	if s.registry != "" {
		query.Set("registry", s.registry)
	}
	return query
}

// print prints the results of a search. If one registry fails, the results of the others are still printed.
func (s search) print(cmd *cobra.Command, client *apiclient.Client, o *cli.Output, r bundles) error {
	for _, f := range r.Failures {
		cmd.PrintErrln("warning:", cli.Printable(f))
	}
	switch n := len(r.Bundles); {
	case n == 0:
		cmd.PrintErrln(cli.Printable(s.noResults(cmd.Context(), client, len(r.Failures))))
		return nil
	case n > s.limit:
		r.Bundles = r.Bundles[:s.limit]
		cmd.PrintErrf("There are more bundles; --limit lists up to %d.\n", maxFound)
	case n == maxFound:
		cmd.PrintErrf("A search returns at most %d bundles, and there may be more; narrow the search with words or --registry.\n", maxFound)
	}
	rows := make([][]string, len(r.Bundles))
	for i, b := range r.Bundles {
		rows[i] = []string{b.Name, b.Version, b.Registry, score(b.TrustScore), shorten(b.Description, 60)}
	}
	return o.Table([]string{"NAME", "VERSION", "REGISTRY", "TRUST", "DESCRIPTION"}, rows)
}

// score formats a trust score; "-" for 0, which registries without scores report.
func score(trust int) string {
	if trust == 0 {
		return "-"
	}
	return strconv.Itoa(trust)
}

// noResults explains which registries were searched without a result, and what to do.
func (s search) noResults(ctx context.Context, client *apiclient.Client, failed int) string {
	asked, err := s.asked(ctx, client)
	from := "registry " + strings.Join(asked, ", ")
	switch {
	case err != nil:
		from = "the configured registries"
	case len(asked) == 0:
		return "No registry is configured: add one to `registries` in the configuration (docs/apps.md), or install a path, a URL or a package."
	case len(asked) > 1:
		from = "registries " + strings.Join(asked, ", ")
	}
	if failed > 0 && failed < len(asked) {
		from += " (the ones above did not respond)"
	}
	if failed > 0 && failed >= len(asked) {
		return fmt.Sprintf("No bundle was found: %s cannot be searched.", from)
	}
	if s.words == "" {
		return fmt.Sprintf("There are no bundles in %s.", from)
	}
	meant := "."
	if names := similar(ctx, client, s.words, s.registry); len(names) > 0 {
		meant = "; did you mean " + strings.Join(names, ", ") + "?"
	}
	return fmt.Sprintf("No bundle in %s matches %q%s `ropewalk app search` without words lists every bundle.", from, s.words, meant)
}

// asked returns the names of the registries that are searched.
func (s search) asked(ctx context.Context, client *apiclient.Client) ([]string, error) {
	if s.registry != "" {
		return []string{s.registry}, nil
	}
	var all struct{ Registries []struct{ Name string } }
	err := client.Get(ctx, "/v1/registries", nil, &all)
	names := make([]string, len(all.Registries))
	for i, r := range all.Registries {
		names[i] = r.Name
	}
	return names, err
}

// similar returns names in the registries, or in one of them, that the user may have meant. It searches for the
// name and then for the part after its scope, and otherwise picks the most similar of all names. It returns
// none if one of them is the name itself, or if the registries cannot be searched.
func similar(ctx context.Context, client *apiclient.Client, name, registry string) []string {
	for _, words := range []string{name, path.Base(name)} {
		found := namesOf(ctx, client, search{words: words, registry: registry, limit: 5})
		switch {
		case slices.Contains(found, name):
			return nil
		case len(found) > 0:
			return found
		}
	}
	all := namesOf(ctx, client, search{registry: registry, limit: maxFound})
	if slices.Contains(all, name) {
		return nil
	}
	if near := schema.Near(name, all); near != "" {
		return []string{near}
	}
	bases := make([]string, len(all)) // the scope may be completely wrong
	for i, n := range all {
		bases[i] = path.Base(n)
	}
	near := schema.Near(path.Base(name), bases)
	for i, n := range all {
		if near != "" && bases[i] == near {
			return []string{n}
		}
	}
	return nil
}

// namesOf returns the names of the bundles that a search finds, or none if it fails.
func namesOf(ctx context.Context, client *apiclient.Client, s search) []string {
	var r bundles
	if client.Get(ctx, "/v1/registries/search", s.query(), &r) != nil {
		return nil
	}
	names := make([]string, len(r.Bundles))
	for i, b := range r.Bundles {
		names[i] = b.Name
	}
	return names
}
