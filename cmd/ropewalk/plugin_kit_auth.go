package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
)

// prepareAuth decides whether the adapter is for OpenID providers, and reads its samples.
func (t *trial) prepareAuth() error {
	keys, err := authtest.NewKeys()
	if err != nil {
		return err
	}
	p, err := authtest.NewProvider(keys)
	if err != nil {
		return err
	}
	defer p.Close()
	if _, aboutProvider := authtest.SettingsFor(t.authSettings(), p); aboutProvider {
		t.keys, t.samplesFile = keys, ""
		return nil
	}
	if t.samplesFile == "" {
		return nil
	}
	raw, err := os.ReadFile(t.samplesFile)
	if err != nil {
		return err
	}
	t.samples, err = authtest.ParseSamples(raw)
	return err
}

// authSettings returns the adapter's settings for authtest, or "" if it has settings and none were given.
func (t *trial) authSettings() string {
	if t.settingsFile == "" && t.takesSettings() {
		return ""
	}
	return string(t.settings.JSON())
}

// settingsFor returns the adapter's settings for one of the kit's providers, or nil if it needs none.
func (t *trial) settingsFor(p *authtest.Provider) json.RawMessage {
	if p == nil {
		return t.settings.JSON()
	}
	settings, _ := authtest.SettingsFor(t.authSettings(), p)
	return json.RawMessage(settings)
}

// validSettings returns settings that the plugin must accept. They are valid until end is called.
func (t *trial) validSettings() (settings json.RawMessage, end func(), err error) {
	if t.keys == nil {
		return bytes.ReplaceAll(t.settings.JSON(), []byte(backendPlaceholder), []byte(t.backend)), func() {}, nil
	}
	p, err := authtest.NewProvider(t.keys)
	if err != nil {
		return nil, nil, err
	}
	return t.settingsFor(p), p.Close, nil
}

func (t *trial) runAuth(ctx context.Context, r *report) error {
	has := func(capability string) bool { return slices.Contains(t.who.Capabilities, capability) }
	judge(ctx, r, authtest.Properties(), t.kit, authtest.Subject{
		Keys: t.keys, Samples: t.samples, Limits: authtest.LimitsOf(t.authSettings()), Heard: t.output.String,
		Logins: has(plugins.CapabilityLogin), Revokes: has(plugins.CapabilityRevocations), Rechecks: has(plugins.CapabilitySessions), Binds: has(plugins.CapabilityVerifyRequest),
		Open: func(ctx context.Context, p *authtest.Provider) (auth.Adapter, func(), error) {
			adapter, err := t.host.Auth(ctx, t.with(t.settingsFor(p)))
			if err != nil {
				return nil, nil, err
			}
			return adapter, func() { t.close(adapter) }, nil
		},
	})
	return nil
}
