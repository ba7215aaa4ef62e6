package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// WorkspaceCommand returns `ropewalk workspace`.
func WorkspaceCommand() *cobra.Command {
	c := &cli.Connection{}
	cmd := &cobra.Command{Use: "workspace", Aliases: []string{"workspaces"}, Short: "List workspaces, and manage them and their members"}
	c.Bind(cmd)
	cmd.AddCommand(
		listWorkspaces(c),
		request(c, "create NAME", "Create a workspace and print its id; you are its first admin", 1, func(_ context.Context, _ *apiclient.Client, args []string) (call, error) {
			return call{
				method: http.MethodPost, path: "/v1/workspaces", body: map[string]any{"name": args[0]},
				done: "Workspace " + args[0] + " was created; you are its first admin.", creates: true,
			}, nil
		}),
		request(c, "rename WORKSPACE NAME", "Rename a workspace, given by id or name", 2, func(ctx context.Context, client *apiclient.Client, args []string) (call, error) {
			path, err := workspacePath(ctx, client, args[0])
			return call{method: http.MethodPatch, path: path, body: map[string]any{"name": args[1]}, done: "Workspace " + args[0] + " is now named " + args[1] + "."}, err
		}),
		request(c, "delete WORKSPACE", "Delete a workspace, given by id or name, and everything in it", 1, func(ctx context.Context, client *apiclient.Client, args []string) (call, error) {
			path, err := workspacePath(ctx, client, args[0])
			return call{method: http.MethodDelete, path: path, done: "Workspace " + args[0] + " has been deleted."}, err
		}),
		instructions(c), listMembers(c), addMember(c),
		request(c, "remove-member WORKSPACE USER", "Remove a member, given by id, email or name", 2, func(ctx context.Context, client *apiclient.Client, args []string) (call, error) {
			path, err := workspacePath(ctx, client, args[0])
			if err != nil {
				return call{}, err
			}
			member, err := pickMember(ctx, client, path, args[1])
			return call{method: http.MethodDelete, path: path + "/members/" + url.PathEscape(member), done: args[1] + " is no longer a member of " + args[0] + "."}, err
		}),
	)
	return cmd
}

// workspacePath returns the path of a workspace, given its id or name.
func workspacePath(ctx context.Context, client *apiclient.Client, meant string) (string, error) {
	id, err := cli.Workspace(ctx, client, meant)
	return "/v1/workspaces/" + url.PathEscape(id), err
}

// members are a workspace's members, as the API lists them.
type members struct {
	Members []struct {
		User user
		Role string
	}
}

// pickMember returns the id of a member, given the id, email or name.
func pickMember(ctx context.Context, client *apiclient.Client, path, meant string) (string, error) {
	var answer members
	if err := client.Get(ctx, path+"/members", nil, &answer); err != nil {
		return "", err
	}
	all := make([]cli.Named, len(answer.Members))
	for i, m := range answer.Members {
		all[i] = m.User.named()
	}
	id, err := cli.Pick("member", meant, all)
	if _, unknown := errors.AsType[*cli.UnknownError](err); unknown {
		return meant, nil // the server reports that there is none
	}
	return id, err
}

// call is a command's request.
type call struct {
	method, path string
	body         any
	done         string // message on success
	creates      bool   // the request creates a workspace; the command prints its id
}

// request returns a command that makes one request and reports that it succeeded.
func request(c *cli.Connection, use, short string, args int, build func(ctx context.Context, client *apiclient.Client, args []string) (call, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(args),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			r, err := build(cmd.Context(), client, args)
			if err != nil {
				return err
			}
			return do(cmd, c, client, r)
		},
	}
}

func do(cmd *cobra.Command, c *cli.Connection, client *apiclient.Client, r call) error {
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

func listWorkspaces(c *cli.Connection) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List your workspaces", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path := "/v1/workspace"
			if all {
				path = "/v1/workspaces"
			}
			return cli.Get(c, cmd, path, nil, func(o *cli.Output, r struct {
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

// instructions shows or sets the instructions of the workspace that the command is connected to.
func instructions(c *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "instructions [TEXT]", Short: "Show the instructions that every model gets in the workspace, or set them as an admin",
		Long: "Show the instructions that every model gets in the workspace, or set them if you are an admin of it. With `-`, the text comes from standard input. " +
			"Empty input removes the instructions.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Get(c, cmd, "/v1/workspace", nil, func(o *cli.Output, r struct{ Instructions string }) error {
					if r.Instructions != "" {
						o.Line("%s", cli.Printable(r.Instructions))
					}
					return nil
				})
			}
			text := args[0]
			if text == "-" {
				raw, err := io.ReadAll(cmd.InOrStdin())
				if err != nil {
					return err
				}
				text = strings.TrimSpace(string(raw))
			}
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			done := "The instructions have been set. They apply from the next message on."
			if text == "" {
				done = "The instructions have been removed."
			}
			return do(cmd, c, client, call{method: http.MethodPatch, path: "/v1/workspace", body: map[string]any{"instructions": text}, done: done})
		},
	}
}

func listMembers(c *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "members WORKSPACE", Short: "List the members of a workspace, given by id or name", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			path, err := workspacePath(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			return cli.Get(c, cmd, path+"/members", nil, func(o *cli.Output, r members) error {
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
	cmd := request(c, "add-member WORKSPACE USER", "Add a member, given by id, email or name, or change a member's role", 2, func(ctx context.Context, client *apiclient.Client, args []string) (call, error) {
		path, err := workspacePath(ctx, client, args[0])
		if err != nil {
			return call{}, err
		}
		person, err := pickUser(ctx, client, args[1])
		return call{method: http.MethodPost, path: path + "/members", body: map[string]any{"user": person, "role": role}, done: args[1] + " now has the role " + role + " in " + args[0] + "."}, err
	})
	cmd.Flags().StringVar(&role, "role", "member", "admin or member")
	return cmd
}
