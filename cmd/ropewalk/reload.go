package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
)

func reloadCommand() *cobra.Command {
	var home string
	var asJSON, planned bool
	cmd := &cobra.Command{
		Use: "reload", Short: "Apply a changed configuration to the running server", Args: cobra.NoArgs,
		Long: "Apply a changed configuration to the running server. Changed adapters are started and checked first. If " +
			"a check fails, nothing changes and the command prints the reason. The exit status is 3 if a change needs " +
			"a restart. --plan changes nothing. It prints which sections of the configuration would change. If the " +
			"identity providers would change, it also prints how many users the new ones recognize, and lists the ones " +
			"they do not.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := config.FindHome(home, config.HostEnvironment())
			if err != nil {
				return err
			}
			if planned {
				return printPlan(cmd, dir, asJSON)
			}
			done, err := control.Dial(dir).Reload(cmd.Context())
			if err != nil {
				return notRunning(err, dir)
			}
			if asJSON {
				if err := cli.PrintJSON(cmd.OutOrStdout(), done); err != nil {
					return err
				}
			} else {
				printReload(cmd, done)
			}
			if len(done.Restart) > 0 {
				return cli.Restart(fmt.Errorf("restart the server to apply %s", strings.Join(done.Restart, ", ")))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&home, "home", "", "service home of the running server (default ROPEWALK_HOME, else ~/.ropewalk)")
	cmd.Flags().BoolVar(&planned, "plan", false, "print what would change, and which users the changed identity providers would not recognize; change nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printReload(cmd *cobra.Command, done control.Reloaded) {
	o := cli.NewOutput(cmd.OutOrStdout())
	switch {
	case len(done.Changed)+len(done.Restart) == 0:
		o.Line("Nothing has changed.")
	case len(done.Changed) > 0:
		o.Line("Applied: %s", strings.Join(done.Changed, ", "))
	}
}

// printPlan prints what a reload would change.
func printPlan(cmd *cobra.Command, home string, asJSON bool) error {
	plan, err := control.Dial(home).Plan(cmd.Context())
	switch {
	case err != nil:
		return notRunning(err, home)
	case asJSON:
		return cli.PrintJSON(cmd.OutOrStdout(), plan)
	}
	o := cli.NewOutput(cmd.OutOrStdout())
	if len(plan.Changed)+len(plan.Restart) == 0 {
		o.Line("Nothing has changed.")
	}
	if len(plan.Changed) > 0 {
		o.Line("Would be applied: %s", strings.Join(plan.Changed, ", "))
	}
	if len(plan.Restart) > 0 {
		o.Line("Would need a restart: %s", strings.Join(plan.Restart, ", "))
	}
	if plan.People == nil {
		return nil
	}
	keys := 0
	rows := make([][]string, len(plan.People.New))
	for i, u := range plan.People.New {
		keys += u.APIKeys
		rows[i] = []string{u.Email, u.DisplayName, string(u.OrgRole), strconv.Itoa(u.APIKeys), u.ID}
	}
	if len(rows) == 0 {
		o.Line("People: %d are known, %d more are matched by their email. Everyone is recognized.", plan.People.Known, plan.People.Linked)
		return nil
	}
	o.Line("People: %d are known, %d more are matched by their email. %d are not recognized; they have %d API keys.",
		plan.People.Known, plan.People.Linked, len(rows), keys)
	o.Line("Anyone not recognized becomes a new user on their next login, and their API keys are refused. `ropewalk user merge` merges the two:")
	return o.Table([]string{"EMAIL", "NAME", "ROLE", "KEYS", "ID"}, rows)
}
