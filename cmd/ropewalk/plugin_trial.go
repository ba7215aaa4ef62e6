package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit/audittest"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/registry/registrytest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

func pluginTestCommand() *cobra.Command {
	var s starting
	var settings, samples, bundles, publish, names, platforms, backend, only, effort, keep, history string
	var seed uint64
	cmd := &cobra.Command{
		Use: "test [PATH]", Short: "Run the conformance kit for its kind against a plugin, in any language", Args: cobra.MaximumNArgs(1),
		Long: "Start the plugin as a server would, compare its responses in generated histories with what the contract " +
			"for its kind allows, and print the result for each property. The exit status is 1 if a property fails. It " +
			"is 4 if the contract requires something that could not be judged; the report then states what to supply. The " +
			"plugin's settings are read from --config, or by default from testdata/settings.json next to the plugin if " +
			"that file exists. docs/kits.md describes the kits.\n\nAn auth adapter for OpenID providers is tested " +
			"against the kit's own providers. Use ${issuer} and ${clientId} in its settings. If it has no " +
			"settings, it gets those that the built-in oidc adapter needs. An auth adapter that isn't for OpenID " +
			"providers needs sample tokens. They are read from --samples (docs/plugins.md describes the format), or by " +
			"default from testdata/samples.json next to the plugin.\n\nA registry needs settings with which it has at least " +
			"one bundle for this platform.",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case history != "" && len(args) == 0:
				return recheck(cmd, history)
			case history != "" || len(args) == 0:
				return cli.Usage(errors.New("specify the PATH of a plugin, or a recorded history with --history"))
			}
			output := &kit.Output{}
			s.output = output
			host, end, err := s.host(cmd)
			if err != nil {
				return err
			}
			defer end()
			degree, err := kit.ParseEffort(effort)
			if err != nil {
				return cli.Usage(fmt.Errorf("--effort: %w", err))
			}
			if seed == 0 {
				seed = rand.Uint64()>>32 + 1 //nolint:gosec // it is printed
			}
			t := &trial{kit: kit.Trial{Effort: degree, Seed: seed, Start: s.timeout, Shorten: shortening}, host: host, home: s.home, output: output, backend: backend, keep: keep, passEnv: s.passEnv, bundlesFile: bundles, publish: publish, names: names, platforms: platforms}
			defer t.cleanUp()
			if err := t.prepare(cmd.Context(), args[0], s.kinds(), settings, samples); err != nil {
				return err
			}
			r := &report{w: cli.Plain(cmd.OutOrStdout()), output: output}
			if only != "" {
				if r.only, err = regexp.Compile(only); err != nil {
					return fmt.Errorf("--run: %w", err)
				}
			}
			r.command = repeating(cmd, args[0], seed)
			r.title(t)
			if err := errors.Join(t.run(cmd.Context(), r), cmd.Context().Err()); err != nil {
				return err
			}
			return r.end()
		},
	}
	s.bind(cmd)
	cmd.Flags().StringVar(&settings, "config", "", "the plugin's settings, YAML or JSON: its section of ropewalk.yaml")
	cmd.Flags().StringVar(&samples, "samples", "", "JSON file with sample tokens, for an auth adapter that isn't for OpenID providers")
	cmd.Flags().StringVar(&effort, "effort", string(kit.Normal), "how many histories to try: quick, normal or deep")
	cmd.Flags().StringVar(&keep, "record", "", "file to which to write the calls of a failing history (session stores)")
	cmd.Flags().StringVar(&history, "history", "", "check the history in this file again, without a plugin")
	cmd.Flags().Uint64Var(&seed, "seed", 0, "seed of a previous run, to repeat its operations and faults (default a new one, which is printed)")
	cmd.Flags().StringVar(&only, "run", "", "judge only the properties whose name matches this regular expression")
	cmd.Flags().StringVar(&bundles, "bundles", "", "what is known about a registry's bundles (names, versions, platforms, digests), JSON; docs/plugins.md describes the format")
	cmd.Flags().StringVar(&publish, "publish", "", "shell command that makes a registry's backend contain the catalogue in the folder $CATALOGUE, and nothing else")
	cmd.Flags().StringVar(&names, "names", "", "format of the names in generated catalogues, such as io.example.{scope}/{name} (default @{scope}/{name})")
	cmd.Flags().StringVar(&platforms, "platforms", string(registrytest.Systems), "how the files in generated catalogues differ: everywhere (not at all), systems or architectures")
	cmd.Flags().StringVar(&backend, "backend", "", "address (host:port) of the backend of a session store, registry or audit sink, which the kit makes unavailable and available again through a proxy, whose address replaces ${backend} in the settings; none if the plugin uses no other process")
	return cmd
}

// recheck checks a recorded session store history again.
func recheck(cmd *cobra.Command, file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := sessionstoretest.Recheck(raw); err != nil {
		return fmt.Errorf("%s: the plugin violates its contract:\n%w", file, err)
	}
	cmd.Println("A correct session store could have given the answers in the history.")
	return nil
}

// shortening is how long the kit looks for a shorter history after a failure.
const shortening = 30 * time.Second

// repeating returns cmd's command line with the seed, without --run.
func repeating(cmd *cobra.Command, path string, seed uint64) string {
	line := cmd.CommandPath() + " " + path
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "run" && f.Name != "seed" {
			line += fmt.Sprintf(" --%s=%s", f.Name, strings.Trim(f.Value.String(), "[]"))
		}
	})
	return line + fmt.Sprintf(" --seed=%d", seed)
}

// trial is one plugin under test.
type trial struct {
	kit          kit.Trial
	host         *pluginhost.Host
	home         string      // of host; removed at the end
	output       *kit.Output // the plugin's output
	plugin       config.Plugin
	who          pluginhost.Identity
	settingsFile string // may be ""
	settings     config.Settings
	bundlesFile  string            // facts about a registry's bundles; may be ""
	samplesFile  string            // may be ""
	samples      *authtest.Samples // only for auth adapters
	keys         *authtest.Keys    // only for adapters for OpenID providers
	restarts     int               // of processes that the kit did not kill
	ended        string            // why the first of them exited; "" if unknown
	passEnv      []string
	data         string              // directory for the files of an audit sink; may be ""
	receiver     *audittest.Receiver // for what an audit sink forwards, with its server and the proxy in front of it; may be nil
	receiving    *http.Server
	proxy        *kit.Proxy
	publish      string // the command that passes a catalogue to a registry's backend; may be ""
	catalogue    string // directory of a generated catalogue; may be ""
	platforms    string // that a registry's backend can distinguish
	names        string // format of the names of generated bundles; "" for the kit's own
	backend      string // address of the plugin's backend; "" if the kit cannot make it unavailable, "none" if there is none
	keep         string // file for a failing recorded history
}

// prepare determines what the plugin is, and reads everything needed to test it.
func (t *trial) prepare(ctx context.Context, path string, kinds []plugins.Kind, settings, samples string) (err error) {
	if t.plugin, err = pluginhost.Executable(path); err != nil {
		return err
	}
	if t.who, err = t.host.Identify(ctx, t.plugin, kinds...); err != nil {
		return err
	}
	if t.settingsFile, err = givenOrDefault(t.plugin.Path, settings, "settings.json"); err != nil {
		return err
	}
	if t.settings, err = config.ReadSection(string(t.who.Kind), t.settingsFile, config.HostEnvironment()); err != nil {
		return err
	}
	if t.who.Kind != plugins.KindAuth {
		if err := t.checkBackend(); err != nil {
			return err
		}
	}
	switch t.who.Kind {
	case plugins.KindRegistry:
		return t.prepareRegistry()
	case plugins.KindAudit:
		return t.prepareAudit()
	}
	if t.who.Kind != plugins.KindAuth {
		return nil
	}
	if t.samplesFile, err = givenOrDefault(t.plugin.Path, samples, "samples.json"); err != nil {
		return err
	}
	return t.prepareAuth()
}

// cleanUp stops an audit sink's receiver.
func (t *trial) cleanUp() {
	if t.receiving != nil {
		t.proxy.Close()
		_ = t.receiving.Close()
	}
}

// givenOrDefault returns the given file, or else the file called name in testdata next to the plugin, or "".
func givenOrDefault(plugin, given, name string) (string, error) {
	if given != "" {
		return given, nil
	}
	path := filepath.Join(filepath.Dir(plugin), "testdata", name)
	switch _, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	default:
		return path, err
	}
}

func (t *trial) run(ctx context.Context, r *report) error {
	if err := t.checkSettings(ctx); err != nil {
		return err
	}
	if err := t.runProtocol(ctx, r); err != nil {
		return err
	}
	if err := t.kits()[t.who.Kind].run(ctx, r); err != nil {
		return err
	}
	judge(ctx, r, []kit.Property[*trial]{survived()}, t.kit, t)
	return nil
}

func (t *trial) takesSettings() bool {
	return slices.Contains(t.who.Capabilities, plugins.CapabilityConfigure)
}

// with returns the plugin with settings.
func (t *trial) with(settings json.RawMessage) config.Plugin {
	p := t.plugin
	p.Settings = config.NewSettings(settings)
	return p
}

// closer is a running plugin.
type closer interface{ Close(context.Context) }

// close stops the plugin, and records how many times its process had to be replaced.
func (t *trial) close(c closer) {
	for _, s := range t.host.Status() {
		t.restarts += s.Restarts
		t.note(s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c.Close(ctx)
}

// note records why the first process exited that the kit did not stop itself. t.restarts already includes the restarts in
// s.
func (t *trial) note(s pluginhost.Status) {
	if t.restarts > 0 && t.ended == "" {
		t.ended = s.LastErr
	}
}

// checkSettings starts the plugin once as the kit will, so that problems with its settings are reported once
// and not by each check.
func (t *trial) checkSettings(ctx context.Context) error {
	raw, end, err := t.validSettings()
	if err != nil {
		return err
	}
	defer end()
	running, err := t.kits()[t.who.Kind].open(ctx, t.with(raw))
	if invalid, ok := errors.AsType[*plugins.ConfigError](err); ok {
		return fmt.Errorf("%s: %w; specify other settings with --config FILE", t.plugin.Path, invalid)
	}
	if err == nil {
		t.close(running)
	}
	return err
}
