package tool

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core"
)

func pinsCommand(c *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "pins", Short: "List the tools whose definitions changed without a new version of their app", Args: cobra.NoArgs,
		Long: "List the tools that are held back because their definition changed without a new version of their app, " +
			"and what changed.\n`ropewalk tool accept ID` makes a changed tool available again. `ropewalk tool refuse " +
			"ID` keeps it held back.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Get(c, cmd, "/v1/pins", nil, func(o *cli.Output, r struct{ Pins []core.PinChange }) error {
				for _, one := range r.Pins {
					printChange(o, one)
				}
				if len(r.Pins) == 0 {
					o.Line("No changed tools.")
				}
				return nil
			})
		},
	}
}

// printChange prints a change. Text from apps is quoted, because it may contain characters that change how a terminal
// shows it.
func printChange(o *cli.Output, c core.PinChange) {
	o.Line("%s  %s__%s  %s, %s since %s", c.ID, c.Server, c.Tool, c.Version, c.State, c.Since)
	if c.Account != "" {
		o.Line("  only the account %s sees this definition", cli.Printable(c.Account))
	}
	if c.RenamedFrom != "" {
		o.Line("  appears to be %s under another name", strconv.QuoteToGraphic(c.RenamedFrom))
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

func changeDecided(c core.PinChange, o *cli.Output) error {
	o.Line("%s__%s: %s", c.Server, c.Tool, c.State)
	return nil
}

// decide returns a command that decides on an approval or a pin. more contains further members of the request, omitted
// if empty.
func decide[T any](c *cli.Connection, list, decision, short string, more map[string]*string, decided func(T, *cli.Output) error) *cobra.Command {
	return &cobra.Command{
		Use: decision + " ID", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			body := map[string]string{"decision": decision}
			for name, value := range more {
				if *value != "" {
					body[name] = *value
				}
			}
			return cli.Do(c, cmd, http.MethodPost, "/v1/"+list+"/"+url.PathEscape(args[0]), body, func(o *cli.Output, one T) error {
				return decided(one, o)
			})
		},
	}
}
