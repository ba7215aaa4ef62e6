// Command ropewalk-bench puts load on MCP servers that speak Streamable HTTP, and prints a table of the figures
// that the service must meet. `make bench` produces that table.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use: "ropewalk-bench", Short: "Put load on MCP servers and compare them", SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.AddCommand(loadCommand(), tableCommand(), rivalCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "ropewalk-bench:", err)
		return 1
	}
	return 0
}
