package app

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// progress shows the server's events about an installation until done is called: on one line of a terminal,
// otherwise one line per stage.
func progress(cmd *cobra.Command, client *apiclient.Client) (done func()) {
	begin, end, erase := "", "\n", ""
	if cli.IsTerminal(os.Stderr) {
		begin, end, erase = "\r\x1b[K", "", "\r\x1b[K"
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	var reader sync.WaitGroup
	reader.Go(func() {
		stage := ""
		_ = client.Stream(ctx, http.MethodGet, "/v1/events", nil, func(e apiclient.Event) error { // only for display
			var p struct{ Name, Stage, Message string }
			if e.Name != "bundle.progress" || json.Unmarshal(e.Data, &p) != nil || erase == "" && p.Stage == stage {
				return nil //nolint:nilerr // an event that cannot be parsed is not shown
			}
			stage = p.Stage
			cmd.PrintErrf("%s%s: %s %s%s", begin, cli.Printable(p.Name), p.Stage, strings.Join(strings.Fields(cli.Printable(p.Message)), " "), end)
			return nil
		})
	})
	return func() {
		cancel()
		reader.Wait()
		cmd.PrintErr(erase)
	}
}
