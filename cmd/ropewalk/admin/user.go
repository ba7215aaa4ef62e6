package admin

import (
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

// user is a person of the organization.
type user struct{ ID, Email, DisplayName, OrgRole string }

// UserCommand returns `ropewalk user`.
func UserCommand() *cobra.Command {
	c := &cli.Connection{}
	cmd := &cobra.Command{Use: "user", Aliases: []string{"users"}, Short: "List users, change their roles, delete them"}
	c.Bind(cmd)
	path := func(id string) string { return "/v1/users/" + url.PathEscape(id) }
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the users of the organization", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return show(c, cmd, "/v1/users", func(o *cli.Output, r struct{ Users []user }) error {
					rows := make([][]string, len(r.Users))
					for i, u := range r.Users {
						rows[i] = []string{u.Email, u.DisplayName, u.OrgRole, u.ID}
					}
					return o.Table([]string{"EMAIL", "NAME", "ROLE", "ID"}, rows)
				})
			},
		},
		request(c, "role USER ROLE", "Set the organization role of a user: owner, admin or member; \"\" is the provider's", 2, func(args []string) call {
			done := args[0] + " has the role that the identity provider says."
			if args[1] != "" {
				done = args[0] + " is " + args[1] + " of the organization."
			}
			return call{method: http.MethodPatch, path: path(args[0]), body: map[string]any{"orgRole": args[1]}, done: done}
		}),
		request(c, "delete USER", "Delete a user with everything that belongs to them alone", 1, func(args []string) call {
			return call{method: http.MethodDelete, path: path(args[0]), done: "User " + args[0] + " is deleted."}
		}),
	)
	return cmd
}
