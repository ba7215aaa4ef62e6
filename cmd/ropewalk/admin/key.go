package admin

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
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
				return show(c, cmd, "/v1/keys", func(o *cli.Output, r struct{ Keys []key }) error {
					rows := make([][]string, len(r.Keys))
					for i, k := range r.Keys {
						rows[i] = []string{k.ID, k.Name, k.Role, k.expiry(), k.CreatedAt}
					}
					return o.Table([]string{"ID", "NAME", "ROLE", "EXPIRES", "CREATED"}, rows)
				})
			},
		},
		request(c, "revoke ID", "Revoke an API key; what uses it ends within seconds", 1, func(args []string) call {
			return call{http.MethodDelete, "/v1/keys/" + url.PathEscape(args[0]), nil}
		}),
	)
	return cmd
}

// key is an API key as it is listed.
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
	var role string
	var lifetime time.Duration
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create an API key for the workspace; it is shown once", Args: cobra.ExactArgs(1),
		Example: "  ropewalk key create ci --role member --expires-in 720h",
		RunE: func(cmd *cobra.Command, args []string) error {
			body := map[string]any{"name": args[0], "role": role}
			if lifetime < 0 {
				return cli.Usage(fmt.Errorf("--expires-in must be positive, not %s", lifetime))
			}
			if lifetime > 0 {
				body["expiresAt"] = time.Now().Add(lifetime).UTC().Format(time.RFC3339)
			}
			return do(cmd, c, call{http.MethodPost, "/v1/keys", body})
		},
	}
	cmd.Flags().StringVar(&role, "role", "member", "role in the workspace: admin or member")
	cmd.Flags().DurationVar(&lifetime, "expires-in", 0, "how long the key is valid, such as 720h (default without end)")
	return cmd
}
