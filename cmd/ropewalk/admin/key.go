package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// KeyCommand returns `ropewalk key`.
func KeyCommand() *cobra.Command {
	c := &cli.Connection{}
	cmd := &cobra.Command{Use: "key", Aliases: []string{"keys"}, Short: "Create, list and revoke API keys"}
	c.Bind(cmd)
	cmd.AddCommand(
		createKey(c),
		&cobra.Command{
			Use: "list", Short: "List the API keys, without their secrets", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return cli.Get(c, cmd, "/v1/keys", nil, func(o *cli.Output, r struct{ Keys []key }) error {
					if len(r.Keys) == 0 {
						cmd.PrintErrln("There are no API keys; `ropewalk key create NAME` creates one.")
						return nil
					}
					rows := make([][]string, len(r.Keys))
					for i, k := range r.Keys {
						rows[i] = []string{k.ID, k.Name, k.Role, k.expiry(), k.CreatedAt}
					}
					return o.Table([]string{"ID", "NAME", "ROLE", "EXPIRES", "CREATED"}, rows)
				})
			},
		},
		request(c, "revoke KEY", "Revoke an API key, given by id or name; everything that uses it loses access within seconds", 1, func(ctx context.Context, client *apiclient.Client, args []string) (call, error) {
			id, err := pickKey(ctx, client, args[0])
			return call{method: http.MethodDelete, path: "/v1/keys/" + url.PathEscape(id), done: "Key " + args[0] + " has been revoked."}, err
		}),
	)
	return cmd
}

// pickKey returns the id of an API key, given its id or name.
func pickKey(ctx context.Context, client *apiclient.Client, meant string) (string, error) {
	var answer struct{ Keys []key }
	if err := client.Get(ctx, "/v1/keys", nil, &answer); err != nil {
		return "", err
	}
	all := make([]cli.Named, len(answer.Keys))
	for i, k := range answer.Keys {
		all[i] = cli.Named{ID: k.ID, Names: []string{k.Name}}
	}
	return cli.Pick("key", meant, all)
}

// printKey creates a key and prints it. Everything else goes to standard error.
func printKey(cmd *cobra.Command, c *cli.Connection, body map[string]any) error {
	type created struct {
		key
		Key, Workspace string
	}
	return cli.Do(c, cmd, http.MethodPost, "/v1/keys", body, func(o *cli.Output, k created) error {
		cmd.PrintErrf("Key %s (%s) for %s, role %s, expires %s. It will not be shown again.\n", cli.Printable(k.Name), k.ID, k.Workspace, k.Role, k.expiry())
		o.Line("%s", k.Key)
		return nil
	})
}

// key is an API key in a list.
type key struct {
	ID, Name, Role, CreatedAt string
	ExpiresAt                 *string
}

func (k key) expiry() string {
	if k.ExpiresAt == nil || *k.ExpiresAt == "" {
		return "never"
	}
	return *k.ExpiresAt
}

func createKey(c *cli.Connection) *cobra.Command {
	var role, orgRole, view, surface string
	var accounts bool
	var lifetime time.Duration
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create an API key for the workspace; it is shown once", Args: cobra.ExactArgs(1),
		Long: "Create an API key for the workspace. Only the key is printed, and it cannot be shown again. " +
			"Commands and MCP clients take it from the environment variable ROPEWALK_API_KEY.",
		Example: "  ropewalk key create ci --role member --expires-in 720h\n  export ROPEWALK_API_KEY=$(ropewalk key create laptop)",
		RunE: func(cmd *cobra.Command, args []string) error {
			body := map[string]any{"name": args[0], "role": role}
			if accounts {
				body["accounts"] = true
			}
			if orgRole != "" {
				body["orgRole"] = orgRole
			}
			if view != "" {
				body["view"] = view
			}
			if surface != "" {
				body["surface"] = surface
			}
			if lifetime < 0 {
				return cli.Usage(fmt.Errorf("--expires-in must be positive, not %s", lifetime))
			}
			if lifetime > 0 {
				body["expiresAt"] = time.Now().Add(lifetime).UTC().Format(time.RFC3339)
			}
			return printKey(cmd, c, body)
		},
	}
	cmd.Flags().StringVar(&role, "role", "member", "role in the workspace: admin or member")
	cmd.Flags().BoolVar(&accounts, "accounts", false, "let calls with the key use your linked accounts for remote apps")
	cmd.Flags().StringVar(&orgRole, "org-role", "", "role in the organization: admin, for programs that manage people and workspaces (default member)")
	cmd.Flags().StringVar(&view, "view", "", "limit the key to this view of the tools")
	cmd.Flags().StringVar(&surface, "surface", "", "how tools are listed to MCP clients that do not choose: full or search")
	cmd.Flags().DurationVar(&lifetime, "expires-in", 0, "how long the key is valid, such as 720h (default: never expires)")
	return cmd
}
