package tool

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

// approval is a call of GET /v1/approvals.
type approval struct {
	ID, Tool, State, RequestedAt, ExpiresAt string

	Caller    struct{ ID, Email string }
	Arguments json.RawMessage
}

// ApprovalCommand returns `ropewalk approval`.
func ApprovalCommand() *cobra.Command {
	c := &cli.Connection{}
	cmd := &cobra.Command{
		Use: "approval", Aliases: []string{"approvals"}, Short: "List, approve and refuse tool calls that wait for a person",
		Long: "Calls of the tools that tools.approve names wait until an admin of the workspace approves them. An approval holds for one\n" +
			"call of the same caller, with the same arguments.",
	}
	c.Bind(cmd)
	cmd.AddCommand(
		listApprovals(c),
		decideApproval(c, "approve", "Approve a call that waits; it is made once"),
		decideApproval(c, "refuse", "Refuse a call that waits"),
	)
	return cmd
}

func listApprovals(c *cli.Connection) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the calls that wait, with their arguments", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			var answer json.RawMessage
			if err := client.Get(cmd.Context(), "/v1/approvals", nil, &answer); err != nil {
				return err
			}
			return cli.Print(c, cmd, answer, func(o *cli.Output, r struct{ Approvals []approval }) error {
				shown := 0
				for _, one := range r.Approvals {
					if !all && one.State != "pending" {
						continue
					}
					shown++
					o.Line("%s  %s  %s, requested %s, expires %s", one.ID, one.Tool, one.State, one.RequestedAt, one.ExpiresAt)
					// Quoted: arguments may hold characters that change how a terminal shows them.
					o.Line("  by %s with %s", strconv.QuoteToGraphic(one.Caller.ID+" "+one.Caller.Email), strconv.QuoteToGraphic(string(one.Arguments)))
				}
				if shown == 0 {
					o.Line("No calls wait.")
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list the calls that do not wait any more as well")
	return cmd
}

func decideApproval(c *cli.Connection, decision, short string) *cobra.Command {
	return &cobra.Command{
		Use: decision + " ID", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			var answer json.RawMessage
			body := map[string]string{"decision": decision}
			if err := client.Do(cmd.Context(), http.MethodPost, "/v1/approvals/"+url.PathEscape(args[0]), body, &answer); err != nil {
				return err
			}
			return cli.Print(c, cmd, answer, func(o *cli.Output, one approval) error {
				o.Line("%s: %s", one.Tool, one.State)
				return nil
			})
		},
	}
}
