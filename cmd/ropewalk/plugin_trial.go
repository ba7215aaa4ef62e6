package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

func pluginTestCommand() *cobra.Command {
	var s starting
	var settings, samples, bundles, backend, only string
	cmd := &cobra.Command{
		Use: "test PATH", Short: "Run the conformance kit of its kind against a plugin, in any language", Args: cobra.ExactArgs(1),
		Long: "Starts the plugin as a server would, checks every promise of its kind's contract and prints how each went; the status " +
			"is 1 when one is broken. The plugin's settings are read from --config, by default from testdata/settings.json beside " +
			"the plugin when it is there.\n\n" +
			"An auth adapter of OpenID providers is set up for providers of the kit's own: write ${issuer} where its settings want " +
			"the issuer; without settings it gets those of the built-in adapter oidc. An adapter of another kind needs tokens to " +
			"try, from --samples (docs/plugins.md has their form), by default testdata/samples.json beside the plugin.\n\n" +
			"A registry needs settings with which it holds at least one bundle for this platform.",
		RunE: func(cmd *cobra.Command, args []string) error {
			heard := &kit.Output{}
			s.heard = heard
			host, end, err := s.host(cmd)
			if err != nil {
				return err
			}
			defer end()
			t := &trial{host: host, heard: heard, backend: backend, passEnv: s.passEnv, bundlesFile: bundles}
			if err := t.prepare(cmd.Context(), args[0], s.kinds(), settings, samples); err != nil {
				return err
			}
			r := newReport(cli.Plain(cmd.OutOrStdout()))
			if only != "" {
				if r.only, err = regexp.Compile(only); err != nil {
					return fmt.Errorf("--run: %w", err)
				}
			}
			r.title(t)
			if err := errors.Join(t.run(cmd.Context(), r), cmd.Context().Err()); err != nil {
				return err
			}
			return r.end()
		},
	}
	s.bind(cmd)
	cmd.Flags().StringVar(&settings, "config", "", "the plugin's settings, YAML or JSON: its section of ropewalk.yaml")
	cmd.Flags().StringVar(&samples, "samples", "", "tokens for an auth adapter that is not one of OpenID providers, JSON")
	cmd.Flags().StringVar(&only, "run", "", "run only the checks whose name matches this regular expression")
	cmd.Flags().StringVar(&bundles, "bundles", "", "what is known of a registry's bundles (names, versions, platforms, digests), JSON; docs/plugins.md has the form")
	cmd.Flags().StringVar(&backend, "backend", "", "address (host:port) of the backend of a session store, a registry or an audit sink: the kit takes it away and brings it back through a proxy, whose address replaces ${backend} in the settings")
	return cmd
}

// trial is one plugin under test.
type trial struct {
	host         *pluginhost.Host
	heard        *kit.Output // what the plugin wrote
	plugin       config.Plugin
	who          pluginhost.Identity
	settingsFile string // "" when there are none
	settings     config.Settings
	bundlesFile  string            // what is known of a registry's bundles, "" when nothing is
	samplesFile  string            // "" when there are none
	samples      *authtest.Samples // of the kind auth alone
	keys         *authtest.Keys    // of adapters of OpenID providers alone
	restarts     int
	passEnv      []string
	backend      string // the address of the plugin's backend, "" when the kit cannot take it away
}

// prepare finds out what the plugin is and reads what is needed to test it.
func (t *trial) prepare(ctx context.Context, path string, kinds []plugins.Kind, settings, samples string) (err error) {
	if t.plugin, err = pluginhost.Executable(path); err != nil {
		return err
	}
	if t.who, err = t.host.Identify(ctx, t.plugin, kinds...); err != nil {
		return err
	}
	if t.settingsFile, err = beside(t.plugin.Path, settings, "settings.json"); err != nil {
		return err
	}
	if t.settings, err = config.ReadSection(string(t.who.Kind), t.settingsFile, config.HostEnvironment()); err != nil {
		return err
	}
	if t.who.Kind == plugins.KindRegistry {
		t.bundlesFile, err = beside(t.plugin.Path, t.bundlesFile, "bundles.json")
		return err
	}
	if t.who.Kind != plugins.KindAuth {
		return nil
	}
	if t.samplesFile, err = beside(t.plugin.Path, samples, "samples.json"); err != nil {
		return err
	}
	return t.prepareAuth()
}

// beside is the file that was given, else the one of that name in testdata beside the plugin, else
// none.
func beside(plugin, given, name string) (string, error) {
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
	if err := t.takesItsSettings(ctx); err != nil {
		return err
	}
	if err := t.runProtocol(ctx, r); err != nil {
		return err
	}
	if err := t.kits()[t.who.Kind].run(ctx, r); err != nil {
		return err
	}
	runChecks(ctx, r, afterwards(), t)
	return nil
}

func (t *trial) takesSettings() bool {
	return slices.Contains(t.who.Capabilities, plugins.CapabilityConfigure)
}

// with is the plugin with settings.
func (t *trial) with(settings json.RawMessage) config.Plugin {
	p := t.plugin
	p.Settings = config.NewSettings(settings)
	return p
}

// closer is a plugin that runs.
type closer interface{ Close(context.Context) }

// open starts the plugin with settings.
func (t *trial) open(ctx context.Context, settings json.RawMessage) (closer, error) {
	return t.kits()[t.who.Kind].open(ctx, t.with(settings))
}

// close ends the plugin, and counts how often its process had to be replaced.
func (t *trial) close(c closer) {
	for _, s := range t.host.Status() {
		t.restarts += s.Restarts
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c.Close(ctx)
}

// takesItsSettings starts the plugin once as the kit will: what it says to its settings is reported
// once, not by each check.
func (t *trial) takesItsSettings(ctx context.Context) error {
	raw, end, err := t.goodSettings()
	if err != nil {
		return err
	}
	defer end()
	running, err := t.open(ctx, raw)
	if wrong, ok := errors.AsType[*plugins.ConfigError](err); ok {
		return fmt.Errorf("%s: %w; give it others with --config FILE", t.plugin.Path, wrong)
	}
	if err == nil {
		t.close(running)
	}
	return err
}
