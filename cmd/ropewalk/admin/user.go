package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// user is a person in the organization.
type user struct {
	ID, Email, DisplayName, OrgRole string
	APIKeys                         int
	Suspended                       bool
}

func (u user) named() cli.Named { return cli.Named{ID: u.ID, Names: []string{u.Email, u.DisplayName}} }

// pickUser returns the id of a user, given the id, email or name. If the caller may not list users, it returns the text
// unchanged and leaves the check to the server.
func pickUser(ctx context.Context, client *apiclient.Client, meant string) (string, error) {
	var answer struct{ Users []user }
	err := client.Get(ctx, "/v1/users", nil, &answer)
	if refused, ok := errors.AsType[*apiclient.Error](err); ok && refused.Status == http.StatusForbidden {
		return meant, nil
	}
	if err != nil {
		return "", err
	}
	all := make([]cli.Named, len(answer.Users))
	for i, u := range answer.Users {
		all[i] = u.named()
	}
	return cli.Pick("user", meant, all)
}

func userPath(ctx context.Context, client *apiclient.Client, meant string) (string, error) {
	id, err := pickUser(ctx, client, meant)
	return "/v1/users/" + url.PathEscape(id), err
}

// UserCommand returns `ropewalk user`.
func UserCommand() *cobra.Command {
	c := &cli.Connection{}
	cmd := &cobra.Command{Use: "user", Aliases: []string{"users"}, Short: "List users, change their roles, merge and delete them"}
	c.Bind(cmd)
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the users of the organization", Args: cobra.NoArgs,
			Long: "List the users of the organization. A user is suspended if no configured identity provider recognizes " +
				"them: they cannot log in, and their API keys are refused.",
			RunE: func(cmd *cobra.Command, _ []string) error {
				return cli.Get(c, cmd, "/v1/users", nil, func(o *cli.Output, r struct{ Users []user }) error {
					rows := make([][]string, len(r.Users))
					for i, u := range r.Users {
						state := "active"
						if u.Suspended {
							state = "suspended"
						}
						rows[i] = []string{u.Email, u.DisplayName, u.OrgRole, state, strconv.Itoa(u.APIKeys), u.ID}
					}
					return o.Table([]string{"EMAIL", "NAME", "ROLE", "STATE", "KEYS", "ID"}, rows)
				})
			},
		},
		request(c, "role USER ROLE", "Set the organization role of a user, given by id, email or name: owner, admin or member; \"\" leaves it to the provider", 2, func(ctx context.Context, client *apiclient.Client, args []string) (call, error) {
			done := args[0] + " now has the role that the identity provider assigns."
			if args[1] != "" {
				done = args[0] + " now has the role " + args[1] + " in the organization."
			}
			path, err := userPath(ctx, client, args[0])
			return call{method: http.MethodPatch, path: path, body: map[string]any{"orgRole": args[1]}, done: done}, err
		}),
		request(c, "delete USER", "Delete a user, given by id, email or name, and everything that belongs only to them", 1, func(ctx context.Context, client *apiclient.Client, args []string) (call, error) {
			path, err := userPath(ctx, client, args[0])
			return call{method: http.MethodDelete, path: path, done: "User " + args[0] + " has been deleted."}, err
		}),
		request(c, "merge FROM INTO", "Move everything from one user to another, and remove the first; users are given by id, email or name", 2, func(ctx context.Context, client *apiclient.Client, args []string) (call, error) {
			path, err := userPath(ctx, client, args[1])
			if err != nil {
				return call{}, err
			}
			from, err := pickUser(ctx, client, args[0])
			return call{method: http.MethodPost, path: path + "/merge", body: map[string]any{"from": from}, done: args[0] + " has been merged into " + args[1] + "."}, err
		}),
	)
	return cmd
}
