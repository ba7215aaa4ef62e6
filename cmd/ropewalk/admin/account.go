package admin

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// AccountCommand returns `ropewalk account`.
func AccountCommand() *cobra.Command {
	c := &cli.Connection{}
	cmd := &cobra.Command{
		Use: "account", Aliases: []string{"accounts"}, Short: "Link your accounts for remote apps",
		Long: "Link your accounts for remote apps, which are then called as you. Each account has a name: main, unless " +
			"you give another. To call a tool with a particular account, include its name in the name of the tool, as " +
			"in github_work__create_issue.",
	}
	c.Bind(cmd)
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the linked accounts", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return cli.Get(c, cmd, "/v1/accounts", nil, func(o *cli.Output, r cli.AccountList) error {
					if len(r.Accounts) == 0 {
						cmd.PrintErrln("No account is linked; `ropewalk account link APP` links one.")
						return nil
					}
					rows := make([][]string, len(r.Accounts))
					for i, a := range r.Accounts {
						rows[i] = []string{a.App, a.Name, o.State(a.State), useOf(a), a.Issuer, a.LinkedAt}
					}
					return o.Table([]string{"APP", "NAME", "STATE", "USE", "ISSUER", "LINKED"}, rows)
				})
			},
		},
		linkAccount(c),
		request(c, "use APP NAME", "Make an account the default for its app", 2, func(ctx context.Context, client *apiclient.Client, args []string) (call, error) {
			id, err := pickAccount(ctx, client, args[0], args[1])
			return call{method: http.MethodPatch, path: "/v1/accounts/" + url.PathEscape(id), body: map[string]any{"default": true}, done: "Calls to " + args[0] + " now use the account " + args[1] + "."}, err
		}),
		request(c, "unlink APP NAME", "Unlink an account; its tokens are revoked at its authorization server", 2, func(ctx context.Context, client *apiclient.Client, args []string) (call, error) {
			id, err := pickAccount(ctx, client, args[0], args[1])
			return call{method: http.MethodDelete, path: "/v1/accounts/" + url.PathEscape(id), done: "The account " + args[1] + " for " + args[0] + " has been unlinked."}, err
		}),
	)
	return cmd
}

// useOf describes who uses an account, and whether it is the default.
func useOf(a cli.Account) string {
	use := "by name"
	if a.Default {
		use = "default"
	}
	if a.Owner == nil {
		use += ", everybody"
	}
	return use
}

// pickAccount returns the id of an app's account, given its name or id.
func pickAccount(ctx context.Context, client *apiclient.Client, app, meant string) (string, error) {
	found, err := cli.AccountsAt(ctx, client, app)
	if err != nil {
		return "", err
	}
	all := make([]cli.Named, len(found))
	for i, a := range found {
		all[i] = cli.Named{ID: a.ID, Names: []string{a.Name}}
	}
	return cli.Pick("account", meant, all)
}

func linkAccount(c *cli.Connection) *cobra.Command {
	var name, scopes string
	var wait time.Duration
	var device, yes bool
	cmd := &cobra.Command{
		Use: "link APP", Short: "Link an account: print a URL to open in a browser, and wait for the login", Args: cobra.ExactArgs(1),
		Example: "  ropewalk account link github\n  ropewalk account link github --name work",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			before, err := cli.AccountsAt(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			if device && wait == 0 {
				return cli.Usage(errors.New("--device waits for the login: leave out --wait 0"))
			}
			var link accountLink
			body := map[string]any{"app": args[0], "name": name, "scopes": strings.Fields(scopes)}
			if device {
				body["device"] = true
			}
			if err := client.Do(cmd.Context(), http.MethodPost, "/v1/accounts", body, &link); err != nil {
				return err
			}
			if c.JSON && wait == 0 {
				return cli.PrintJSON(cmd.OutOrStdout(), link)
			}
			if link.Consent != nil {
				return link.withCode(cmd, client, body, yes, wait)
			}
			cmd.PrintErrln("Open this page in a browser in which you are logged in:")
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), cli.Printable(link.URL)); err != nil || wait == 0 {
				return err
			}
			return cli.AwaitAccount(cmd, client, link.URL, before, wait)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the account (default main); an existing account with this name gets a new login")
	cmd.Flags().StringVar(&scopes, "scopes", "", "additional scopes to request, separated by spaces")
	cmd.Flags().BoolVar(&device, "device", false, "log in with a code on another device, if the authorization server supports that")
	cmd.Flags().BoolVar(&yes, "yes", false, "with --device, skip the confirmation")
	cmd.Flags().DurationVar(&wait, "wait", 10*time.Minute, "how long to wait for the login; with 0, print the URL and do not wait")
	return cmd
}

// accountLink is a response of POST /v1/accounts.
type accountLink struct {
	App  string `json:"app"`
	Name string `json:"name"`
	URL  string `json:"url"`

	Consent *struct {
		Address, Issuer, Digest string
		Scopes                  []string
		Shared, Replaces        bool
	} `json:"consent,omitempty"`
}

// withCode shows what the person agrees to, and then a code to enter on another device. It waits for the login.
func (l accountLink) withCode(cmd *cobra.Command, client *apiclient.Client, body map[string]any, yes bool, wait time.Duration) error {
	if err := l.agree(cmd, yes); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), wait)
	defer cancel()
	body["agreed"] = l.Consent.Digest
	var begun struct {
		Device struct {
			Login, URL, CompleteURL, Code string
			Interval                      int
		}
	}
	if err := client.Do(ctx, http.MethodPost, "/v1/accounts", body, &begun); err != nil {
		return err
	}
	d := begun.Device
	cmd.PrintErrf("Open this page on any device, and enter the code %s:\n", cli.Printable(d.Code))
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), cli.Printable(cmp.Or(d.CompleteURL, d.URL))); err != nil {
		return err
	}
	for interval := d.Interval; ; {
		select {
		case <-time.After(time.Duration(max(interval, 1)) * time.Second):
		case <-ctx.Done():
			return cmp.Or(cmd.Context().Err(), fmt.Errorf("nobody entered the code within %s; start again", wait))
		}
		var now struct {
			Account  *cli.Account
			Interval int
		}
		if err := client.Do(ctx, http.MethodPost, "/v1/accounts/device", map[string]any{"login": d.Login}, &now); err != nil {
			return err
		}
		if now.Account != nil {
			cmd.PrintErrf("The account %s for %s is linked.\n", cli.Printable(l.Name), cli.Printable(l.App))
			return nil
		}
		interval = now.Interval
	}
}

// agree shows what the person agrees to, and asks for consent unless yes is set.
func (l accountLink) agree(cmd *cobra.Command, yes bool) error {
	who := "only you, and the models and clients that act for you"
	if l.Consent.Shared {
		who = "everybody in this workspace"
	}
	if l.Consent.Replaces {
		who += ". The new login replaces the previous one"
	}
	cmd.PrintErrf("App: %s (%s)\nYou log in at: %s\nRights: %s\nWho can use the account %s: %s\n", cli.Printable(l.App), cli.Printable(l.Consent.Address),
		cli.Printable(l.Consent.Issuer), cli.Printable(cmp.Or(strings.Join(l.Consent.Scopes, " "), "whatever the authorization server grants")), cli.Printable(l.Name), who)
	if yes {
		return nil
	}
	cmd.PrintErr("Log in? [y/N] ")
	line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !strings.HasPrefix(strings.ToLower(line), "y") {
		return errors.New("nothing was linked, because you did not agree (--yes skips the question)")
	}
	return nil
}
