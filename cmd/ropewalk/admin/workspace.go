package admin

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

// WorkspaceCommand returns `ropewalk workspace`.
func WorkspaceCommand() *cobra.Command {
	c := &cli.Connection{}
	cmd := &cobra.Command{Use: "workspace", Aliases: []string{"workspaces"}, Short: "List workspaces, and manage them and their members"}
	c.Bind(cmd)
	cmd.AddCommand(
		listWorkspaces(c),
		request(c, "create NAME", "Create a workspace and print its id; you are its first admin", 1, func(args []string) call {
			return call{
				method: http.MethodPost, path: "/v1/workspaces", body: map[string]any{"name": args[0]},
				done: "Workspace " + args[0] + " is created; you are its first admin.", creates: true,
			}
		}),
		request(c, "rename ID NAME", "Rename a workspace", 2, func(args []string) call {
			return call{method: http.MethodPatch, path: workspacePath(args[0]), body: map[string]any{"name": args[1]}, done: "Workspace " + args[0] + " is named " + args[1] + "."}
		}),
		request(c, "delete ID", "Delete a workspace and what belongs to it", 1, func(args []string) call {
			return call{method: http.MethodDelete, path: workspacePath(args[0]), done: "Workspace " + args[0] + " is deleted."}
		}),
		listMembers(c), addMember(c),
		request(c, "remove-member ID USER", "Remove a member, named by id or email", 2, func(args []string) call {
			return call{method: http.MethodDelete, path: workspacePath(args[0]) + "/members/" + url.PathEscape(args[1]), done: args[1] + " is no member of " + args[0] + " any more."}
		}),
	)
	return cmd
}

func workspacePath(id string) string { return "/v1/workspaces/" + url.PathEscape(id) }

// call is a request of a command.
type call struct {
	method, path string
	body         any
	done         string // what is said when it succeeded
	creates      bool   // a workspace, whose id is printed
}

// request is a command that makes one request, and says that it was done.
func request(c *cli.Connection, use, short string, args int, build func(args []string) call) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(args),
		RunE: func(cmd *cobra.Command, args []string) error { return do(cmd, c, build(args)) },
	}
}

func do(cmd *cobra.Command, c *cli.Connection, r call) error {
	client, err := c.Client(cmd.Context())
	if err != nil {
		return err
	}
	var answer json.RawMessage
	if err := client.Do(cmd.Context(), r.method, r.path, r.body, &answer); err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(cmd.OutOrStdout(), answer)
	}
	cmd.PrintErrln(cli.Printable(r.done))
	if !r.creates {
		return nil
	}
	return cli.Print(c, cmd, answer, func(o *cli.Output, made struct{ Workspace struct{ ID string } }) error {
		o.Line("%s", made.Workspace.ID)
		return nil
	})
}

// show is a command that gets a path and prints the answer as a table.
func show[T any](c *cli.Connection, cmd *cobra.Command, path string, render func(*cli.Output, T) error) error {
	client, err := c.Client(cmd.Context())
	if err != nil {
		return err
	}
	var answer json.RawMessage
	if err := client.Get(cmd.Context(), path, nil, &answer); err != nil {
		return err
	}
	return cli.Print(c, cmd, answer, render)
}

func listWorkspaces(c *cli.Connection) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List your workspaces", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path := "/v1/workspace"
			if all {
				path = "/v1/workspaces"
			}
			return show(c, cmd, path, func(o *cli.Output, r struct {
				Workspaces []struct{ ID, Name, Role string }
			}) error {
				rows := make([][]string, len(r.Workspaces))
				for i, w := range r.Workspaces {
					rows[i] = []string{w.ID, w.Name, w.Role}
				}
				return o.Table([]string{"ID", "NAME", "ROLE"}, rows)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list all workspaces of the organization, as an admin")
	return cmd
}

func listMembers(c *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "members ID", Short: "List the members of a workspace", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return show(c, cmd, workspacePath(args[0])+"/members", func(o *cli.Output, r struct {
				Members []struct {
					User user
					Role string
				}
			}) error {
				rows := make([][]string, len(r.Members))
				for i, m := range r.Members {
					rows[i] = []string{m.User.Email, m.User.DisplayName, m.Role, m.User.ID}
				}
				return o.Table([]string{"EMAIL", "NAME", "ROLE", "ID"}, rows)
			})
		},
	}
}

func addMember(c *cli.Connection) *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use: "add-member ID USER", Short: "Add a member, named by id or email, or change a member's role", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return do(cmd, c, call{method: http.MethodPost, path: workspacePath(args[0]) + "/members", body: map[string]any{"user": args[1], "role": role}, done: args[1] + " is " + role + " of " + args[0] + "."})
		},
	}
	cmd.Flags().StringVar(&role, "role", "member", "admin or member")
	return cmd
}
