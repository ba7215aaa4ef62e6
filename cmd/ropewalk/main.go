// Command ropewalk runs installed MCP bundles and offers their tools over an HTTP API and one MCP
// endpoint.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/core/process"
)

// version is set by the build.
var version = "dev"

func main() {
	if len(os.Args) > 1 && os.Args[1] == process.ShimArg { // before anything else: a shim starts fast
		os.Exit(process.ShimMain(os.Args[2:]))
	}
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "ropewalk:", err)
		return 1
	}
	return 0
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ropewalk", Short: "Many MCP apps, one rope: runs bundles and offers their tools over HTTP and MCP.",
		Version: version, SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	cmd.AddCommand(serveCommand(), reloadCommand(), configCommand(), pluginCommand(), backupCommand(), restoreCommand(), sampleCommand())
	return cmd
}
