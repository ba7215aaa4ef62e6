// Package event contains `ropewalk events`, which prints what happens in the workspace as it happens.
package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// Command returns `ropewalk events`.
func Command() *cobra.Command {
	c := &cli.Connection{}
	var only []string
	var heartbeats bool
	cmd := &cobra.Command{
		Use: "events", Short: "Print the workspace's events as they happen", Args: cobra.NoArgs,
		Long: "Print the workspace's events as they happen, until Ctrl-C. With --json, each line is an object with the event's name and data; " +
			"docs/api.md, section 7, lists the data of each event. --only selects events by name, where * stands for any text.\n\nThe events:\n" + list(),
		Example: "  ropewalk events --only bundle.crashed,bundle.dead\n  ropewalk events --only 'approval.*' --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := check(cmd, only); err != nil {
				return err
			}
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			err = client.Stream(cmd.Context(), http.MethodGet, "/v1/events", nil, func(e apiclient.Event) error {
				if e.Name == core.EventHeartbeat && !heartbeats && !slices.Contains(only, e.Name) || len(only) > 0 && !slices.ContainsFunc(only, func(pattern string) bool { return matches(pattern, e.Name) }) {
					return nil
				}
				return write(cmd, c.JSON, e)
			})
			if cmd.Context().Err() != nil {
				return nil //nolint:nilerr // the command ends with Ctrl-C
			}
			if err == nil {
				err = fmt.Errorf("the server closed the stream")
			}
			return err
		},
	}
	c.Bind(cmd)
	cmd.Flags().StringSliceVar(&only, "only", nil, "print only events with these names; may be repeated")
	cmd.Flags().BoolVar(&heartbeats, "heartbeats", false, "print heartbeats as well")
	cmd.Flags().BoolP("follow", "f", true, "keep printing events; always true")
	return cmd
}

func write(cmd *cobra.Command, asJSON bool, e apiclient.Event) error {
	var data bytes.Buffer
	if err := json.Compact(&data, e.Data); err != nil {
		return fmt.Errorf("event %s does not match the API: %w", e.Name, err)
	}
	if asJSON {
		return cli.WriteJSON(cmd.OutOrStdout(), fmt.Sprintf("{\"event\":%q,\"data\":%s}\n", e.Name, data.Bytes()))
	}
	return cli.WriteJSON(cmd.OutOrStdout(), fmt.Sprintf("%s  %-21s %s\n", time.Now().Format(time.TimeOnly), e.Name, data.Bytes()))
}
