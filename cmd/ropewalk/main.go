// Command ropewalk runs installed MCP bundles and serves their tools over an HTTP API and one MCP endpoint. It
// is also a client of that API.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/admin"
	"github.com/ropewalk/ropewalk/cmd/ropewalk/app"
	"github.com/ropewalk/ropewalk/cmd/ropewalk/chat"
	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/cmd/ropewalk/clientconfig"
	"github.com/ropewalk/ropewalk/cmd/ropewalk/contexts"
	"github.com/ropewalk/ropewalk/cmd/ropewalk/conversation"
	"github.com/ropewalk/ropewalk/cmd/ropewalk/doctor"
	"github.com/ropewalk/ropewalk/cmd/ropewalk/event"
	"github.com/ropewalk/ropewalk/cmd/ropewalk/login"
	"github.com/ropewalk/ropewalk/cmd/ropewalk/status"
	"github.com/ropewalk/ropewalk/cmd/ropewalk/tool"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := root()
	cli.Prepare(cmd)
	err := cli.Execute(ctx, cmd, os.Args[1:])
	if err != nil {
		_, _ = fmt.Fprintln(cli.Plain(os.Stderr), "ropewalk:", err)
	}
	return cli.Status(err)
}

// The groups of the help.
const (
	groupServer = "server"
	groupUse    = "use"
	groupAdmin  = "admin"
)

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ropewalk", Short: "Run MCP apps, and serve their tools over an HTTP API and one MCP endpoint",
		Long: "Run MCP apps, and serve their tools over an HTTP API and one MCP endpoint.\n\n`ropewalk up` starts a server with a sample app and " +
			"prints what to do next; `ropewalk doctor` reports what is wrong, and what to do about it.",
		Version: version, SilenceUsage: true, SilenceErrors: true,
	}
	cmd.SetOut(os.Stdout)
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.AddGroup(
		&cobra.Group{ID: groupServer, Title: "The server:"}, &cobra.Group{ID: groupUse, Title: "Use a server, here or elsewhere:"},
		&cobra.Group{ID: groupAdmin, Title: "Configure and extend:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			cmd.AddCommand(c)
		}
	}
	add(groupServer, upCommand(), serveCommand(), stopCommand(), reloadCommand(), logCommand(), debugCommand(), backupCommand(), restoreCommand(), encryptionCommand(), doctorCommand())
	add(groupUse,
		login.Command(), login.LogoutCommand(), login.WhoamiCommand(),
		status.Command(), app.Command(), tool.Command(), tool.ApprovalCommand(), chat.Command(), conversation.Command(), event.Command(), status.UsageCommand(),
		admin.WorkspaceCommand(), admin.UserCommand(), admin.KeyCommand(), admin.ViewCommand(), admin.AccountCommand(), clientconfig.Command(), contexts.Command(),
	)
	add(groupAdmin, configCommand(), pluginCommand(), auditCommand())
	add(groupAdmin, versionCommand())
	cmd.SetHelpCommandGroupID(groupAdmin)
	cmd.SetCompletionCommandGroupID(groupAdmin)
	cmd.AddCommand(manCommand(), sampleCommand())
	return cmd
}

func doctorCommand() *cobra.Command {
	var s settings
	cmd := doctor.Command(doctor.Options{Version: version, Date: buildInfo().Date, Builtins: builtins(), Load: s.load, Home: s.findHome})
	s.bind(cmd)
	s.bindListener(cmd)
	return cmd
}
