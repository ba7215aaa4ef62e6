package admin

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// account is a linked account in a list.
type account struct {
	ID, App, Name, Issuer, State, LinkedAt string
	Owner                                  *string
	Default                                bool
}

type accountList struct{ Accounts []account }

// AccountCommand returns `ropewalk account`.
func AccountCommand() *cobra.Command {
	c := &cli.Connection{}
	cmd := &cobra.Command{
		Use: "account", Aliases: []string{"accounts"}, Short: "Link your accounts at remote apps",
		Long: "Link your accounts at remote apps, which are then called as you. An account has a name, main unless you give one; tools are " +
			"called with it by its name, as in github_work__create_issue.",
	}
	c.Bind(cmd)
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the linked accounts", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return cli.Get(c, cmd, "/v1/accounts", nil, func(o *cli.Output, r accountList) error {
					if len(r.Accounts) == 0 {
						cmd.PrintErrln("No account is linked; `ropewalk account link APP` links one.")
						return nil
					}
					rows := make([][]string, len(r.Accounts))
					for i, a := range r.Accounts {
						rows[i] = []string{a.App, a.Name, o.State(a.State), a.use(), a.Issuer, a.LinkedAt}
					}
					return o.Table([]string{"APP", "NAME", "STATE", "USE", "ISSUER", "LINKED"}, rows)
				})
			},
		},
		linkAccount(c),
		request(c, "use APP NAME", "Make an account the default of its app", 2, func(ctx context.Context, client *apiclient.Client, args []string) (call, error) {
			id, err := pickAccount(ctx, client, args[0], args[1])
			return call{method: http.MethodPatch, path: "/v1/accounts/" + url.PathEscape(id), body: map[string]any{"default": true}, done: "Calls of " + args[0] + " use the account " + args[1] + "."}, err
		}),
		request(c, "unlink APP NAME", "Unlink an account; its tokens are revoked at its authorization server", 2, func(ctx context.Context, client *apiclient.Client, args []string) (call, error) {
			id, err := pickAccount(ctx, client, args[0], args[1])
			return call{method: http.MethodDelete, path: "/v1/accounts/" + url.PathEscape(id), done: "The account " + args[1] + " at " + args[0] + " is unlinked."}, err
		}),
	)
	return cmd
}

// use says who uses an account, and whether it is the default.
func (a account) use() string {
	use := "by name"
	if a.Default {
		use = "default"
	}
	if a.Owner == nil {
		use += ", everybody"
	}
	return use
}

func accountsAt(ctx context.Context, client *apiclient.Client, app string) ([]account, error) {
	var answer accountList
	err := client.Get(ctx, "/v1/accounts", url.Values{"app": {app}}, &answer)
	return answer.Accounts, err
}

// pickAccount returns the id of an account at an app, given its name or id.
func pickAccount(ctx context.Context, client *apiclient.Client, app, meant string) (string, error) {
	found, err := accountsAt(ctx, client, app)
	if err != nil {
		return "", err
	}
	all := make([]cli.Named, len(found))
	for i, a := range found {
		all[i] = cli.Named{ID: a.ID, Names: []string{a.Name}}
	}
	return cli.Pick("account", meant, all)
}

// pollEvery is how often to check for a login in the browser.
const pollEvery = time.Second

func linkAccount(c *cli.Connection) *cobra.Command {
	var name, scopes string
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "link APP", Short: "Link an account: print the page to open in a browser, and wait for the login", Args: cobra.ExactArgs(1),
		Example: "  ropewalk account link github\n  ropewalk account link github --name work",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			before, err := accountsAt(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			var link struct{ App, Name, URL string }
			body := map[string]any{"app": args[0], "name": name, "scopes": strings.Fields(scopes)}
			if err := client.Do(cmd.Context(), http.MethodPost, "/v1/accounts", body, &link); err != nil {
				return err
			}
			if c.JSON && wait == 0 {
				return cli.PrintJSON(cmd.OutOrStdout(), link)
			}
			cmd.PrintErrln("Open this page in a browser in which you are logged in:")
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), cli.Printable(link.URL)); err != nil || wait == 0 {
				return err
			}
			return awaitAccount(cmd, client, link.App, link.Name, before, wait)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the account (default main); an account of this name gets a new login")
	cmd.Flags().StringVar(&scopes, "scopes", "", "rights to ask for in addition, separated by spaces")
	cmd.Flags().DurationVar(&wait, "wait", 10*time.Minute, "how long to wait for the login; 0 prints the page only")
	return cmd
}

// awaitAccount waits until an account has been linked, or linked again.
func awaitAccount(cmd *cobra.Command, client *apiclient.Client, app, name string, before []account, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), wait)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	since := ""
	for _, a := range before {
		if a.Name == name {
			since = a.LinkedAt
		}
	}
	for {
		now, err := accountsAt(ctx, client, app)
		for _, a := range now {
			if a.Name == name && a.State == "active" && a.LinkedAt != since {
				cmd.PrintErrf("The account %s at %s is linked.\n", cli.Printable(name), cli.Printable(app))
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return cmp.Or(cmd.Context().Err(), err, fmt.Errorf("nobody logged in within %s; `ropewalk account link %s` starts again", wait, app))
		}
	}
}
