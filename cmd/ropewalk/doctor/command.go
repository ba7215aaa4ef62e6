package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
	"github.com/ropewalk/ropewalk/core/pluginhost"
)

// Options contains what the command needs from the program.
type Options struct {
	Version  string
	Date     string // when this version was built, in RFC 3339; may be ""
	Builtins pluginhost.Builtins
	// Load reads the configuration that the command's flags specify. The program adds those flags.
	Load func(cmd *cobra.Command) (*config.Config, error)
	// Home returns the home that the flags and the environment specify.
	Home func() (string, error)
}

// limit is how long a whole examination may take.
const limit = time.Minute

// examination is one run of the command.
type examination struct {
	Report
	o       Options
	deep    bool
	home    string
	config  *config.Config  // nil if it is broken
	running *control.Status // nil if no server is running for the home, or it does not respond
	silent  error           // why a server's control socket does not respond
}

// Command returns `ropewalk doctor`.
func Command(o Options) *cobra.Command {
	var bundle string
	var asJSON, deep bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check the server and what it needs; each finding comes with a remedy", Args: cobra.NoArgs,
		Long: "Check the configuration, the home, the disk, the clock, ports, runtimes, the sandbox, plugins, apps, " +
			"the database and its encryption, the session store, registries, the identity provider, the proxy and " +
			"models. The exit status is 1 if something is wrong. --bundle writes a zip file for a support request, with the " +
			"report, the effective settings without secrets, and the state of apps and plugins.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), limit)
			defer cancel()
			if _, err := os.Lstat(bundle); bundle != "" && err == nil {
				return cli.Usage(fmt.Errorf("--bundle: %s already exists; choose another name, or remove it", bundle))
			}
			e := &examination{o: o, deep: deep, Report: Report{Version: o.Version, Findings: []Finding{}}}
			var err error
			if e.home, err = o.Home(); err != nil {
				return err
			}
			e.examine(ctx, cmd, cli.IsTerminal(os.Stderr))
			if bundle != "" {
				if err := e.writeBundle(ctx, bundle); err != nil {
					return err
				}
				cmd.PrintErrf("Written to %s; check it before you send it.\n", bundle)
			}
			if asJSON {
				if err := cli.PrintJSON(cmd.OutOrStdout(), e.Report); err != nil {
					return err
				}
			} else {
				e.print(cli.NewOutput(cmd.OutOrStdout()))
			}
			if e.worst() == failed {
				return errors.New("something is wrong; see the remedies above")
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&bundle, "bundle", "", "zip file to write for a support request")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	flags.BoolVar(&deep, "deep", false, "also send one tiny request to the default model (uses a few tokens)")
	return cmd
}
