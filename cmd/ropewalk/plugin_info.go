package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/config/schema"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

func pluginInfoCommand() *cobra.Command {
	var s starting
	var home string
	cmd := &cobra.Command{
		Use: "info PATH | NAME", Short: "Start a plugin and print how it identifies itself", Args: cobra.ExactArgs(1),
		Long: "Start a plugin and print how it identifies itself. Give the PATH of its executable, or the NAME of a " +
			"built-in adapter or an installed plugin. `ropewalk plugin list` shows the names, such as directory, or " +
			"registry-directory with its kind. If the file of an installed plugin has changed since it was accepted, " +
			"the plugin is not started (`ropewalk plugin verify`).",
		Example: "  ropewalk plugin info ./sessionstore-demo\n  ropewalk plugin info registry-directory",
		RunE: func(cmd *cobra.Command, args []string) error {
			host, end, err := s.host(cmd)
			if err != nil {
				return err
			}
			defer end()
			dir, err := config.FindHome(home, config.HostEnvironment())
			if err != nil {
				return err
			}
			p, kinds, err := s.named(cmd, dir, args[0])
			if err != nil {
				return err
			}
			who, err := host.Identify(cmd.Context(), p, kinds...)
			if err != nil {
				return err
			}
			printWho(cli.Plain(cmd.OutOrStdout()), p, who)
			return nil
		},
	}
	s.bind(cmd)
	cmd.Flags().StringVar(&home, "home", "", "service home with the installed plugins (default ROPEWALK_HOME, else ~/.ropewalk)")
	return cmd
}

// named returns the plugin that an argument refers to, and its possible kinds. The argument is the path of an
// executable, or else the name of a built-in adapter or installed plugin, which may include its kind. An
// installed plugin must be the accepted one. As in the configuration, a built-in adapter takes precedence
// over an installed plugin with the same name.
func (s *starting) named(cmd *cobra.Command, home, arg string) (config.Plugin, []plugins.Kind, error) {
	info, err := os.Stat(arg)
	if strings.ContainsRune(arg, filepath.Separator) || err == nil && !info.IsDir() {
		p, err := pluginhost.Executable(arg)
		return p, s.kinds(), err
	}
	all, err := available(home)
	if err != nil {
		return config.Plugin{}, nil, err
	}
	var found []pluginhost.Status
	var names, kinds []string
	for _, p := range all {
		if s.kind != "" && s.kind != string(p.Kind) {
			continue
		}
		full := string(p.Kind) + "-" + p.Name
		if arg == p.Name || arg == full {
			found = append(found, p)
			if !slices.Contains(kinds, string(p.Kind)) {
				kinds = append(kinds, string(p.Kind))
			}
		}
		names = append(names, p.Name, full)
	}
	switch {
	case len(found) == 0:
		return config.Plugin{}, nil, fmt.Errorf("no plugin is named %q, and there is no such file%s", arg, schema.Nearest(arg, names))
	case len(kinds) > 1:
		return config.Plugin{}, nil, cli.Usage(fmt.Errorf("plugins of several kinds are named %q; specify --kind %s", arg, strings.Join(kinds, " or --kind ")))
	case len(found) > 1: // available lists the built-in adapters first
		cmd.PrintErrf("%q refers to the built-in adapter; for the installed plugin of the same name, specify its path, %s.\n", arg, found[1].Path)
	}
	kind := []plugins.Kind{found[0].Kind}
	if found[0].Path == "" {
		return config.Plugin{Adapter: found[0].Adapter}, kind, nil
	}
	p, err := pluginhost.LockFile{Home: home}.Installed(filepath.Base(found[0].Path))
	return p, kind, err
}

func printWho(w io.Writer, p config.Plugin, who pluginhost.Identity) {
	for _, line := range [][2]string{
		{"kind", string(who.Kind)},
		{"name", who.Name},
		{"version", who.Version},
		{"protocols", strings.Trim(fmt.Sprint(who.ProtocolVersions), "[]")},
		{"capabilities", cmp.Or(strings.Join(who.Capabilities, ", "), "none")},
		{"path", cmp.Or(p.Path, "built in")},
		{"sha256", p.SHA256},
	} {
		if line[1] == "" {
			continue
		}
		_, _ = fmt.Fprintf(w, "%-12s %s\n", line[0], line[1])
	}
}

// starting starts a plugin that is not configured. It has the flags of the commands that do so, and the same
// plugin host as the server.
type starting struct {
	kind    string
	timeout time.Duration
	passEnv []string
	verbose bool
	output  io.Writer // receives the plugin's output; may be nil
	home    string    // of the host
}

func (s *starting) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.kind, "kind", "", kindNames()+" (default: what the file's name starts with, else the one it serves)")
	cmd.Flags().DurationVar(&s.timeout, "start-timeout", kit.StartTimeout, "how long the plugin may take to start")
	cmd.Flags().StringSliceVar(&s.passEnv, "pass-env", nil, "environment variables that the plugin gets in addition to the default ones, like plugins.passEnv")
	cmd.Flags().BoolVarP(&s.verbose, "verbose", "v", false, "print what the plugin logs")
}

// kindNames lists the kinds of plugins in a sentence.
func kindNames() string {
	kinds := plugins.Kinds()
	last := len(kinds) - 1
	names := make([]string, last)
	for i, kind := range kinds[:last] {
		names[i] = string(kind)
	}
	return strings.Join(names, ", ") + " or " + string(kinds[last])
}

func (s *starting) kinds() []plugins.Kind {
	if s.kind == "" {
		return nil
	}
	return []plugins.Kind{plugins.Kind(s.kind)}
}

// host returns a plugin host with its own empty home, which end removes.
func (s *starting) host(cmd *cobra.Command) (host *pluginhost.Host, end func(), err error) {
	if _, known := pluginhost.KindOf(s.kind + "-"); s.kind != "" && !known {
		return nil, nil, fmt.Errorf("--kind must be %[2]s, not %[1]q", s.kind, kindNames())
	}
	home, err := os.MkdirTemp("", "ropewalk-plugin-")
	if err != nil {
		return nil, nil, err
	}
	s.home = home
	log := hclog.NewNullLogger()
	if s.verbose {
		log = hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: cmd.ErrOrStderr()})
	}
	host = pluginhost.New(pluginhost.Options{
		Home: home, Logger: log, Builtins: builtins(), Env: config.HostEnvironment(), PassEnv: s.passEnv, StartTimeout: s.timeout, Output: s.output,
	})
	return host, func() { _ = os.RemoveAll(home) }, nil
}
