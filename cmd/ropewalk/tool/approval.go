package tool

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

// approval is a call from GET /v1/approvals.
type approval struct {
	ID, Tool, State, RequestedAt, ExpiresAt string

	Caller, Decider   struct{ ID, Email string }
	DecidedAt, Reason string
	Arguments         json.RawMessage
}

// ApprovalCommand returns `ropewalk approval`.
func ApprovalCommand() *cobra.Command {
	c := &cli.Connection{}
	cmd := &cobra.Command{
		Use: "approval", Aliases: []string{"approvals"}, Short: "List, approve and refuse tool calls that are waiting for a person",
		Long: "Calls to the tools listed in tools.approve wait until an admin of the workspace approves them. An " +
			"approval is valid for one call by the same caller, with the same arguments.",
	}
	c.Bind(cmd)
	cmd.AddCommand(
		listApprovals(c),
		decideCall(c, "approve", "Approve a waiting call, only this once"),
		decideCall(c, "always", "Approve a waiting call, and all later calls to its tool until its definition changes"),
		decideCall(c, "refuse", "Refuse a waiting call"),
		listStanding(c), withdraw(c),
	)
	return cmd
}

// decideCall returns a command that decides on a call.
func decideCall(c *cli.Connection, decision, short string) *cobra.Command {
	var reason string
	cmd := decide(c, "approvals", decision, short, map[string]*string{"reason": &reason}, approval.decided)
	cmd.Flags().StringVar(&reason, "reason", "", "`text` to record with the decision; if the call is refused, its caller gets it too")
	return cmd
}

func listApprovals(c *cli.Connection) *cobra.Command {
	var all, decided bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the waiting calls, with their arguments", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query, none := url.Values{"state": {"pending"}}, "No calls are waiting."
			switch {
			case all:
				query, none = nil, "No calls are waiting, and none waited recently."
			case decided:
				query, none = url.Values{"state": {"decided"}}, "No calls were decided on recently."
			}
			return cli.Get(c, cmd, "/v1/approvals", query, func(o *cli.Output, r struct {
				Approvals  []approval
				NextCursor string
			}) error {
				for _, one := range r.Approvals {
					one.print(o)
				}
				if r.NextCursor != "" { // a page with long arguments is short
					o.Line("There are more. Decide on these first, or see GET /v1/approvals?cursor=%s", r.NextCursor)
				}
				if len(r.Approvals) == 0 {
					o.Line("%s", none)
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also list calls that are no longer waiting")
	cmd.Flags().BoolVar(&decided, "decided", false, "list the calls that somebody decided on, latest decision first")
	cmd.MarkFlagsMutuallyExclusive("all", "decided")
	return cmd
}

// print prints a call. Text from people and models is quoted, because it may contain characters that change how
// a terminal shows it.
func (a approval) print(o *cli.Output) {
	o.Line("%s  %s  %s, requested %s, expires %s", a.ID, a.Tool, a.State, a.RequestedAt, a.ExpiresAt)
	with := ""
	if len(a.Arguments) > 0 { // a call that ended without a decision has none
		with = " with " + strconv.QuoteToGraphic(string(a.Arguments))
	}
	o.Line("  by %s%s", strconv.QuoteToGraphic(a.Caller.ID+" "+a.Caller.Email), with)
	if a.Decider.ID == "" {
		return
	}
	reason := ""
	if a.Reason != "" {
		reason = ", reason: " + strconv.QuoteToGraphic(a.Reason)
	}
	o.Line("  decided by %s at %s%s", strconv.QuoteToGraphic(a.Decider.ID+" "+a.Decider.Email), a.DecidedAt, reason)
}

func (a approval) decided(o *cli.Output) error {
	o.Line("%s: %s", a.Tool, a.State)
	return nil
}

// standing is a tool from GET /v1/approvals/always.
type standing struct {
	ID, Tool, Since string

	GrantedBy struct{ ID, Email string }
}

func listStanding(c *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "standing", Short: "List the tools whose calls an admin has allowed until their definition changes", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Get(c, cmd, "/v1/approvals/always", nil, func(o *cli.Output, r struct{ Always []standing }) error {
				for _, one := range r.Always {
					o.Line("%s  %s  allowed by %s since %s", one.ID, one.Tool, strconv.QuoteToGraphic(one.GrantedBy.ID+" "+one.GrantedBy.Email), one.Since)
				}
				if len(r.Always) == 0 {
					o.Line("No tools are always allowed.")
				}
				return nil
			})
		},
	}
}

func withdraw(c *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "withdraw ID", Short: "Withdraw a standing approval; further calls to its tool need approval again", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.Do(c, cmd, http.MethodDelete, "/v1/approvals/always/"+url.PathEscape(args[0]), nil, func(o *cli.Output, one standing) error {
				o.Line("Calls to %s need approval again.", one.Tool)
				return nil
			})
		},
	}
}
