package login

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// LogoutCommand returns `ropewalk logout`.
func LogoutCommand() *cobra.Command {
	c := &cli.Connection{}
	cmd := &cobra.Command{
		Use: "logout", Short: "End the login of a context, and forget it", Args: cobra.NoArgs,
		Long: "End the login of the current context (or of --context), here and at the server. If the context contains an API key, it is only deleted here; `ropewalk key revoke` revokes it.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := cli.LoadContexts()
			if err != nil {
				return err
			}
			name, err := c.ContextName(all)
			if err != nil {
				return err
			}
			of := all.Contexts[name]
			if of.Login == "" && of.Key == "" {
				return errors.New("you are not logged in; `ropewalk whoami` shows which user commands act as")
			}
			login, unreadable := of.Token()
			of.Key = ""
			of.ForgetLogin()
			all.Contexts[name] = of
			if err := all.Save(); err != nil {
				return err
			}
			cmd.PrintErrf("Logged out at %s.\n", cli.Printable(of.Server))
			if login == "" {
				return unreadable
			}
			client := &apiclient.Client{Server: of.Server, Login: login}
			err = client.Do(cmd.Context(), http.MethodPost, "/v1/auth/logout", nil, nil)
			if refused, answered := errors.AsType[*apiclient.Error](err); err != nil && (!answered || refused.Status != http.StatusUnauthorized) {
				return fmt.Errorf("the login was removed here, but the server did not end it, so it remains valid for up to 7 days: %w", err)
			}
			return nil
		},
	}
	c.Bind(cmd)
	return cmd
}

// WhoamiCommand returns `ropewalk whoami`.
func WhoamiCommand() *cobra.Command {
	c := &cli.Connection{}
	cmd := &cobra.Command{
		Use: "whoami", Short: "Show which user commands run as, and on which server", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.PersonClient(cmd.Context())
			if err != nil {
				return err
			}
			return cli.Get(c, cmd, "/v1/auth/session", nil, func(o *cli.Output, who session) error {
				o.Line("%s (%s), %s of the organization", o.Bold(who.name()), who.User.ID, cmp.Or(who.User.OrgRole, "member"))
				o.Line("at %s", client.Server)
				o.Line("by %s", by(client))
				return nil
			})
		},
	}
	c.Bind(cmd)
	return cmd
}

// by describes the credentials that the commands send to the server.
func by(client *apiclient.Client) string {
	switch {
	case client.KeyFrom != "":
		return "the key from " + client.KeyFrom
	case client.Key != "":
		return "the control socket of the server on this machine"
	case client.Login != "":
		return "a login"
	}
	return "nothing: the server requires no login"
}
