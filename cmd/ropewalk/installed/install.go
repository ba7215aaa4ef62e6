package installed

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/core/pluginhost/install"
	"github.com/ropewalk/ropewalk/plugins"
)

// Options contains what the commands need from the program.
type Options struct {
	Builtins pluginhost.Builtins
	// Inspect reads the configuration with the given home and file, like config.Inspect.
	Inspect func(home, file string) (c *config.Config, unset config.Problems, err error)
}

// configured returns the adapters named in the configuration. Environment variables in their settings, and in
// other sections, may be set only for the server.
func (o Options) configured(at place) ([]pluginhost.Configured, error) {
	c, unset, err := o.Inspect(at.home, at.file)
	if err != nil {
		return nil, err
	}
	all := pluginhost.AllConfigured(c)
	var invalid config.Problems
	for _, p := range unset {
		if slices.ContainsFunc(all, func(used pluginhost.Configured) bool { return isIdentity(used.At, p.Path) }) {
			invalid = append(invalid, p)
		}
	}
	if len(invalid) > 0 {
		return nil, invalid
	}
	return all, nil
}

// isIdentity reports whether a path is a section, or the key in it that selects the plugin.
func isIdentity(at, path string) bool {
	at = strings.TrimSuffix(at, ".")
	return path == at || path == at+".adapter" || path == at+".path" || path == at+".sha256"
}

// Commands returns install, remove and verify.
func (o Options) Commands() []*cobra.Command {
	return []*cobra.Command{o.installCommand(), o.removeCommand(), o.verifyCommand()}
}

// place is where a command finds the home and the configuration.
type place struct{ home, file string }

func (p *place) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.file, "config", "", "configuration file (default <home>/ropewalk.yaml)")
	cmd.Flags().StringVar(&p.home, "home", "", "service home (default ROPEWALK_HOME, else ~/.ropewalk)")
}

// dir returns the home itself.
func (p *place) dir() (string, error) { return config.FindHome(p.home, config.HostEnvironment()) }

func (o Options) installCommand() *cobra.Command {
	var at place
	var r install.Request
	timeout := 30 * time.Second // as on the server
	cmd := &cobra.Command{
		Use: "install SOURCE", Short: "Install a plugin from a file, a folder, a URL, an OCI registry or a list of plugins", Args: cobra.ExactArgs(1),
		Long: "Install a plugin as <home>/plugins/<kind>-<name> and record in <home>/plugins.lock where it came from, " +
			"its version, its sha256 and who signed it. If anything is refused, nothing changes.\n\nSOURCE is an " +
			"executable, an archive (.tar.gz, .zip) or a folder with one, or an https URL of an executable or archive. " +
			"It can also be an artifact in an OCI registry, as oci://host/repository:tag, or a name such as auth-okta " +
			"or auth-okta@1.2.0, which is looked up in the lists configured in plugins.registries. If there are several " +
			"files, the one for this platform is used (auth-okta_linux_amd64).\n\nSOURCE.sha256 and SOURCE.minisig " +
			"next to a file or URL are used as its checksum and its minisign signature; in a folder, so is " +
			"SHA256SUMS. A signature is valid if its key is one of plugins.trustedKeys or given with --key. It is required " +
			"if plugins.requireSignature is set or --key is given. A version older than the installed one is refused.",
		Example: "  ropewalk plugin install ./auth-okta\n" +
			"  ropewalk plugin install https://example.com/auth-okta_1.2.0_linux_amd64.tar.gz --key okta.pub\n" +
			"  ropewalk plugin install oci://ghcr.io/acme/auth-okta:1.2.0\n" +
			"  ropewalk plugin install auth-okta@1.2.0",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Source = args[0]
			i, err := o.installer(cmd, at, timeout)
			if err != nil {
				return err
			}
			result, err := i.Install(cmd.Context(), r)
			if err != nil {
				return err
			}
			printInstalled(cmd, result)
			return nil
		},
	}
	at.bind(cmd)
	cmd.Flags().StringVar(&r.Name, "name", "", "name for the adapter (default the plugin's own name)")
	cmd.Flags().StringVar(&r.SHA256, "sha256", "", "the expected sha256 of the file or archive")
	cmd.Flags().StringArrayVar(&r.Keys, "key", nil, "a minisign public key that must have signed the plugin, or a file with one; may be repeated")
	cmd.Flags().BoolVar(&r.AllowDowngrade, "allow-downgrade", false, "let an older version replace a newer one")
	cmd.Flags().DurationVar(&timeout, "start-timeout", timeout, "how long the plugin may take to start when it is tested")
	return cmd
}

// installer returns the installer for a home. Only the plugins section of the configuration has to be valid.
func (o Options) installer(cmd *cobra.Command, at place, timeout time.Duration) (*install.Installer, error) {
	home, err := at.dir()
	if err != nil {
		return nil, err
	}
	environment := config.HostEnvironment()
	settings, err := config.LoadPlugins(config.Options{Path: at.file, Home: at.home, Environment: environment})
	if err != nil {
		return nil, err
	}
	return &install.Installer{
		Home: home, Settings: settings,
		Builtin: func(kind plugins.Kind, name string) bool { _, ok := o.Builtins[kind][name]; return ok },
		Notify:  func(line string) { cmd.PrintErrln(line) },
		Identify: func(ctx context.Context, path string) (pluginhost.Identity, error) {
			return identify(ctx, path, settings, environment, timeout)
		},
	}, nil
}

// identify starts a plugin with its own empty home.
func identify(ctx context.Context, path string, settings config.Plugins, environment config.Environment, timeout time.Duration) (pluginhost.Identity, error) {
	home, err := os.MkdirTemp("", "ropewalk-plugin-")
	if err != nil {
		return pluginhost.Identity{}, err
	}
	defer func() { _ = os.RemoveAll(home) }()
	p, err := pluginhost.Executable(path)
	if err != nil {
		return pluginhost.Identity{}, err
	}
	host := pluginhost.New(pluginhost.Options{Home: home, Env: environment, PassEnv: settings.PassEnv, StartTimeout: timeout})
	return host.Identify(ctx, p)
}

func printInstalled(cmd *cobra.Command, r install.Result) {
	was := ""
	if r.Before != "" {
		was = ", in place of " + r.Before
	}
	cmd.Printf("%s %s has been installed%s.\n", r.Name, cmp.Or(r.Record.Version, "without a version"), was)
	for _, line := range [][2]string{
		{"path", r.Path}, {"source", r.Record.Source}, {"sha256", r.Record.SHA256}, {"signer", cmp.Or(r.Record.Signer, "none")},
	} {
		cmd.Printf("%-8s %s\n", line[0], line[1])
	}
	cmd.Println("A server that uses it keeps running its current version until `ropewalk reload`.")
}
