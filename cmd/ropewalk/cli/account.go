package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// Account is a linked account in a list.
type Account struct {
	ID, App, Name, Issuer, State, LinkedAt string
	Owner                                  *string
	Default                                bool
}

// AccountList is the response of GET /v1/accounts.
type AccountList struct{ Accounts []Account }

// AccountsAt returns the accounts linked for an app.
func AccountsAt(ctx context.Context, client *apiclient.Client, app string) ([]Account, error) {
	var answer AccountList
	err := client.Get(ctx, "/v1/accounts", url.Values{"app": {app}}, &answer)
	return answer.Accounts, err
}

// accountPoll is how often to check for a login in the browser.
const accountPoll = time.Second

// AwaitAccount waits until a person has linked or relinked an account on a page of the server. The page's address names
// the app, the account and the person. before lists the app's accounts from before the person got the page.
func AwaitAccount(cmd *cobra.Command, client *apiclient.Client, page string, before []Account, wait time.Duration) error {
	address, err := url.Parse(page)
	if err != nil {
		return fmt.Errorf("the response does not match the API: %w", err)
	}
	want := address.Query()
	app, name := want.Get("app"), want.Get("account")
	ctx, cancel := context.WithTimeout(cmd.Context(), wait)
	defer cancel()
	tick := time.NewTicker(accountPoll)
	defer tick.Stop()
	known := map[string]string{}
	for _, a := range before {
		known[a.ID] = a.LinkedAt
	}
	for {
		now, err := AccountsAt(ctx, client, app)
		for _, a := range now {
			isOwn := a.Owner == nil || *a.Owner == want.Get("for") // admins also see the accounts of others
			if isOwn && a.Name == name && a.State == "active" && a.LinkedAt != known[a.ID] {
				cmd.PrintErrf("The account %s for %s is linked.\n", Printable(name), Printable(app))
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
