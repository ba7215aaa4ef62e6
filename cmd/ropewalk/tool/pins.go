package tool

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

// change is a changed tool of GET /v1/pins.
type change struct {
	ID, Server, Tool, Version, RenamedFrom, State, Since string

	Changes []struct{ Path, Before, After string }
}

func pinsCommand(c *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "pins", Short: "List the tools whose definitions changed without a new version of their app", Args: cobra.NoArgs,
		Long: "List the tools that are held back because their definition changed without a new version of their app, with what changed.\n" +
			"`ropewalk tool accept ID` puts a changed tool in use, `ropewalk tool refuse ID` leaves it held back.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			var answer json.RawMessage
			if err := client.Get(cmd.Context(), "/v1/pins", nil, &answer); err != nil {
				return err
			}
			return cli.Print(c, cmd, answer, func(o *cli.Output, r struct{ Pins []change }) error {
				for _, one := range r.Pins {
					one.print(o)
				}
				if len(r.Pins) == 0 {
					o.Line("No changed tools.")
				}
				return nil
			})
		},
	}
}

// print writes a change. Texts of apps are quoted: they may hold characters that change how a terminal
// shows them.
func (c change) print(o *cli.Output) {
	o.Line("%s  %s__%s  %s, %s since %s", c.ID, c.Server, c.Tool, c.Version, c.State, c.Since)
	if c.RenamedFrom != "" {
		o.Line("  seems to be %s under another name", strconv.QuoteToGraphic(c.RenamedFrom))
	}
	for _, d := range c.Changes {
		if d.Before != "" {
			o.Line("  - %s: %s", d.Path, strconv.QuoteToGraphic(d.Before))
		}
		if d.After != "" || d.Before == "" {
			o.Line("  + %s: %s", d.Path, strconv.QuoteToGraphic(d.After))
		}
	}
}

// decideCommand is `tool accept` or `tool refuse`.
func decideCommand(c *cli.Connection, decision, short string) *cobra.Command {
	return &cobra.Command{
		Use: decision + " ID", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			var answer json.RawMessage
			body := map[string]string{"decision": decision}
			if err := client.Do(cmd.Context(), http.MethodPost, "/v1/pins/"+url.PathEscape(args[0]), body, &answer); err != nil {
				return err
			}
			return cli.Print(c, cmd, answer, func(o *cli.Output, one change) error {
				o.Line("%s__%s: %s", one.Server, one.Tool, one.State)
				return nil
			})
		},
	}
}
