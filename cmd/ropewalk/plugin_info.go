package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
)

func pluginInfoCommand() *cobra.Command {
	var s starting
	cmd := &cobra.Command{
		Use: "info PATH", Short: "Start a plugin and print who it says it is", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			host, end, err := s.host(cmd)
			if err != nil {
				return err
			}
			defer end()
			p, err := pluginhost.Executable(args[0])
			if err != nil {
				return err
			}
			who, err := host.Identify(cmd.Context(), p, s.kinds()...)
			if err != nil {
				return err
			}
			printWho(cli.Plain(cmd.OutOrStdout()), p, who)
			return nil
		},
	}
	s.bind(cmd)
	return cmd
}

func printWho(w io.Writer, p config.Plugin, who pluginhost.Identity) {
	for _, line := range [][2]string{
		{"kind", string(who.Kind)},
		{"name", who.Name},
		{"version", who.Version},
		{"protocols", strings.Trim(fmt.Sprint(who.ProtocolVersions), "[]")},
		{"capabilities", cmp.Or(strings.Join(who.Capabilities, ", "), "none")},
		{"path", p.Path},
		{"sha256", p.SHA256},
	} {
		_, _ = fmt.Fprintf(w, "%-12s %s\n", line[0], line[1])
	}
}

// starting is how a command starts a plugin that no configuration names: the flags of those that
// do, and the host, which is the server's own.
type starting struct {
	kind    string
	timeout time.Duration
	passEnv []string
	verbose bool
	heard   io.Writer // gets what the plugin writes; nil for none
}

func (s *starting) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.kind, "kind", "", fmt.Sprintf("one of %v (default: what the file's name begins with, else whichever it serves)", plugins.Kinds()))
	cmd.Flags().DurationVar(&s.timeout, "start-timeout", 10*time.Second, "how long the plugin may take to start")
	cmd.Flags().StringSliceVar(&s.passEnv, "pass-env", nil, "environment variables that the plugin gets beside the usual ones, as plugins.passEnv")
	cmd.Flags().BoolVarP(&s.verbose, "verbose", "v", false, "print what the plugin logs")
}

func (s *starting) kinds() []plugins.Kind {
	if s.kind == "" {
		return nil
	}
	return []plugins.Kind{plugins.Kind(s.kind)}
}

// host returns a plugin host on an empty home of its own, which end removes.
func (s *starting) host(cmd *cobra.Command) (host *pluginhost.Host, end func(), err error) {
	if _, known := pluginhost.KindOf(s.kind + "-"); s.kind != "" && !known {
		return nil, nil, fmt.Errorf("--kind is %q; it must be one of %v", s.kind, plugins.Kinds())
	}
	home, err := os.MkdirTemp("", "ropewalk-plugin-")
	if err != nil {
		return nil, nil, err
	}
	log := hclog.NewNullLogger()
	if s.verbose {
		log = hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: cmd.ErrOrStderr()})
	}
	host = pluginhost.New(pluginhost.Options{
		Home: home, Logger: log, Env: config.HostEnvironment(), PassEnv: s.passEnv, StartTimeout: s.timeout, Heard: s.heard,
	})
	return host, func() { _ = os.RemoveAll(home) }, nil
}
