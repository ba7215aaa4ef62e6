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

// progress shows what the server publishes about an installation, on one line of a terminal, until done
// is called.
func progress(cmd *cobra.Command, client *apiclient.Client) (done func()) {
	if !cli.IsTerminal(os.Stderr) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	var reader sync.WaitGroup
	reader.Go(func() {
		_ = client.Stream(ctx, http.MethodGet, "/v1/events", nil, func(e apiclient.Event) error { // only for show
			var p struct{ Name, Stage, Message string }
			if e.Name != "bundle.progress" || json.Unmarshal(e.Data, &p) != nil {
				return nil //nolint:nilerr // an event that cannot be read is not shown
			}
			cmd.PrintErrf("\r\x1b[K%s: %s %s", cli.Printable(p.Name), p.Stage, strings.Join(strings.Fields(cli.Printable(p.Message)), " "))
			return nil
		})
	})
	return func() {
		cancel()
		reader.Wait()
		cmd.PrintErr("\r\x1b[K")
	}
}
