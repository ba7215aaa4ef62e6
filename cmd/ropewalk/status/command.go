// Package status contains `ropewalk status` and `ropewalk usage`, which give an overview of a server.
package status

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core"
)

// workspace is the response of GET /v1/workspace (docs/api.md 8.1).
type workspace struct {
	Workspace struct{ ID, Name, Role string }
	User      *struct{ ID, Email, DisplayName, OrgRole string }
	Model     json.RawMessage
	// ModelError says why Model is null; older servers do not send it.
	ModelError string
	Apps       []struct {
		Name, Status string
		ToolCount    int
	}
	Status  struct{ Uptime float64 }
	Version string
}

// Command returns `ropewalk status`.
func Command() *cobra.Command {
	c := &cli.Connection{}
	cmd := &cobra.Command{
		Use: "status", Short: "Show the server, the workspace and its apps at a glance", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			var answer json.RawMessage
			if err := client.Get(cmd.Context(), "/v1/workspace", nil, &answer); err != nil {
				return err
			}
			return cli.Print(c, cmd, answer, func(o *cli.Output, w workspace) error {
				return print(o, client.Server, w)
			})
		},
	}
	c.Bind(cmd)
	return cmd
}

func print(o *cli.Output, server string, w workspace) error {
	fields := [][2]string{{"Server", fmt.Sprintf("%s, version %s, up for %s", server, w.Version, (time.Duration(w.Status.Uptime) * time.Second).String())}}
	if w.User != nil {
		fields = append(fields, [2]string{"User", fmt.Sprintf("%s (%s)", cmp.Or(w.User.Email, w.User.DisplayName, w.User.ID), w.User.OrgRole)})
	}
	fields = append(fields, [2]string{"Workspace", fmt.Sprintf("%s %q (%s)", w.Workspace.ID, w.Workspace.Name, w.Workspace.Role)})
	var model string
	if json.Unmarshal(w.Model, &model) != nil && len(w.Model) > 0 && string(w.Model) != "null" {
		model = string(w.Model)
	}
	switch {
	case model == "" && w.ModelError != "":
		model = "none: " + w.ModelError
	case model == "":
		model = "none configured"
	}
	tools := 0
	for _, a := range w.Apps {
		tools += a.ToolCount
	}
	fields = append(fields, [2]string{"Model", model}, [2]string{"Apps", fmt.Sprintf("%d, with %s", len(w.Apps), cli.Count(tools, "tool"))})
	if err := o.Record(fields); err != nil || len(w.Apps) == 0 {
		return err
	}
	o.Line("")
	rows := make([][]string, len(w.Apps))
	for i, a := range w.Apps {
		rows[i] = []string{a.Name, a.Status, strconv.Itoa(a.ToolCount)}
	}
	return o.Table([]string{"APP", "STATUS", "TOOLS"}, rows)
}

// The values of the flags of `ropewalk usage`.
const (
	periods = "day, week, month, all"
	groups  = "day, model, conversation, user"
)

// UsageCommand returns `ropewalk usage`.
func UsageCommand() *cobra.Command {
	c := &cli.Connection{}
	var period, groupBy string
	cmd := &cobra.Command{
		Use: "usage", Short: "Show model usage and cost", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, flag := range []struct{ name, value, choices string }{{"period", period, periods}, {"by", groupBy, groups}} {
				if choices := strings.Split(flag.choices, ", "); !slices.Contains(choices, flag.value) {
					return cli.Usage(fmt.Errorf("--%s must be one of %s, not %q", flag.name, flag.choices, flag.value))
				}
			}
			return cli.Get(c, cmd, "/v1/usage", url.Values{"period": {period}, "groupBy": {groupBy}}, func(o *cli.Output, u usage) error { return u.print(o, groupBy) })
		},
	}
	c.Bind(cmd)
	cmd.Flags().StringVar(&period, "period", "month", "one of "+periods)
	cmd.Flags().StringVar(&groupBy, "by", "day", "one of "+groups)
	return cmd
}

type usage struct {
	Totals    core.UsageTotals
	Breakdown []core.GroupUsage
}

func (u usage) print(o *cli.Output, groupBy string) error {
	rows := [][]string{}
	for _, b := range u.Breakdown {
		rows = append(rows, row(b.Key, b.UsageTotals))
	}
	rows = append(rows, row("total", u.Totals))
	return o.Table([]string{header(groupBy), "INPUT", "OUTPUT", "CALLS", "TOOLS", "COST"}, rows)
}

func header(groupBy string) string {
	switch groupBy {
	case "model":
		return "MODEL"
	case "conversation":
		return "CONVERSATION"
	case "user":
		return "USER"
	}
	return "DAY"
}

func row(key string, t core.UsageTotals) []string {
	cost := "-"
	if t.CostUSD != nil {
		cost = fmt.Sprintf("$%.4f", *t.CostUSD)
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []string{key, number(t.InputTokens), number(t.OutputTokens), number(t.LLMCalls), number(t.ToolCalls), cost}
}
