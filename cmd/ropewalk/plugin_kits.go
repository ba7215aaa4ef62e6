package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/audit/audittest"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/protocoltest"
	"github.com/ropewalk/ropewalk/plugins/registry/registrytest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
	auditv1 "github.com/ropewalk/ropewalk/proto/ropewalk/audit/v1"
	authv1 "github.com/ropewalk/ropewalk/proto/ropewalk/auth/v1"
	registryv1 "github.com/ropewalk/ropewalk/proto/ropewalk/registry/v1"
	sessionstorev1 "github.com/ropewalk/ropewalk/proto/ropewalk/sessionstore/v1"
)

// kindKit is what plugin test does with plugins of one kind.
type kindKit struct {
	open  func(context.Context, config.Plugin) (closer, error) // starts one, as a server would
	run   func(context.Context, *report) error                 // runs the kit of the kind
	probe protocoltest.Probe
}

func (t *trial) kits() map[plugins.Kind]kindKit {
	return map[plugins.Kind]kindKit{
		plugins.KindAuth: {
			open: func(ctx context.Context, p config.Plugin) (closer, error) {
				return t.host.Auth(ctx, config.Auth{Plugin: p})
			},
			run: t.runAuth,
			probe: func(ctx context.Context, conn grpc.ClientConnInterface, about string) error {
				_, err := authv1.NewAuthServiceClient(conn).Verify(ctx, &authv1.VerifyRequest{Token: "no-token-of-anybody-" + about})
				return err
			},
		},
		plugins.KindSessionStore: {
			open: func(ctx context.Context, p config.Plugin) (closer, error) { return t.host.SessionStore(ctx, p) },
			run:  t.runSessionStore,
			probe: func(ctx context.Context, conn grpc.ClientConnInterface, about string) error {
				_, err := sessionstorev1.NewSessionStoreServiceClient(conn).Get(ctx, &sessionstorev1.GetRequest{Id: "no-session-of-anybody-" + about})
				return err
			},
		},
		plugins.KindRegistry: {
			open: func(ctx context.Context, p config.Plugin) (closer, error) {
				return t.host.Registry(ctx, config.Registry{Name: p.Adapter, Plugin: p})
			},
			run: t.runRegistry,
			probe: func(ctx context.Context, conn grpc.ClientConnInterface, about string) error {
				_, err := registryv1.NewRegistryServiceClient(conn).Resolve(ctx, &registryv1.ResolveRequest{Name: "no/bundle-" + about, Os: "linux", Arch: "amd64"})
				return err
			},
		},
		plugins.KindAudit: {
			open: func(ctx context.Context, p config.Plugin) (closer, error) {
				return t.host.Audit(ctx, config.AuditSink{Name: p.Adapter, Plugin: p})
			},
			run: t.runAudit,
			probe: func(ctx context.Context, conn grpc.ClientConnInterface, _ string) error {
				_, err := auditv1.NewAuditServiceClient(conn).Write(ctx, &auditv1.WriteRequest{Stream: "probe"})
				return err
			},
		},
	}
}

// runChecks runs checks one by one, so that the report shows each as it ends.
func runChecks[S any](ctx context.Context, r *report, checks []kit.Check[S], subject S) {
	for _, check := range checks {
		if ctx.Err() != nil {
			return
		}
		if r.only != nil && !r.only.MatchString(check.Name) {
			r.left++
			continue
		}
		for _, result := range kit.Run(ctx, []kit.Check[S]{check}, subject) {
			r.result(result)
		}
	}
}

func (t *trial) runSessionStore(ctx context.Context, r *report) error {
	settings, backend, err := t.withBackend()
	if err != nil {
		return err
	}
	defer backend.Close()
	store, err := t.host.SessionStore(ctx, t.with(settings))
	if err != nil {
		return err
	}
	defer t.close(store)
	subject := sessionstoretest.Subject{
		Store: store.Store(), Durable: slices.Contains(t.who.Capabilities, plugins.CapabilityDurable),
		Open:      func(ctx context.Context) (*sessionstoretest.Process, error) { return t.secondStore(ctx, settings) },
		Exclusive: slices.Contains(t.who.Capabilities, plugins.CapabilityExclusive), Restart: t.restart,
	}
	if backend.Proxy != nil {
		subject.Backend = backend.Proxy
	}
	runChecks(ctx, r, sessionstoretest.Checks(), subject)
	return nil
}

// restart kills the process of the only plugin, and waits until the next one serves.
func (t *trial) restart(ctx context.Context) error {
	before := t.host.Status()[0]
	t.restarts-- // one that says nothing against the plugin
	if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
		return err
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(restartTimeout); time.Now().Before(until); {
		now := t.host.Status()[0]
		if now.State == pluginhost.Running && now.PID != before.PID {
			return nil
		}
		if now.Restarts > before.Restarts && now.LastErr != nil {
			before.LastErr = now.LastErr
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("the next process does not serve within %v: %w", restartTimeout, before.LastErr)
}

// restartTimeout is how long the next process of a plugin that was killed may take to serve.
const restartTimeout = 20 * time.Second

// secondStore starts the plugin once more, as another server would.
func (t *trial) secondStore(ctx context.Context, settings json.RawMessage) (*sessionstoretest.Process, error) {
	store, err := t.host.SessionStore(ctx, t.with(settings))
	if err != nil {
		return nil, err
	}
	pids := t.host.Status()
	pid := pids[len(pids)-1].PID
	return &sessionstoretest.Process{
		Store: store.Store(),
		Kill:  func() { _ = syscall.Kill(pid, syscall.SIGKILL) },
		Close: func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			store.Close(ctx)
		},
	}, nil
}

func (t *trial) runAudit(ctx context.Context, r *report) error {
	settings, backend, err := t.withBackend()
	if err != nil {
		return err
	}
	defer backend.Close()
	first, err := t.auditProcess(ctx, settings)
	if err != nil {
		return err
	}
	defer first.Close()
	subject := audittest.Subject{
		Sink: first.Sink, Exclusive: slices.Contains(t.who.Capabilities, plugins.CapabilityExclusive), Restart: t.restart,
		Open: func(ctx context.Context) (*audittest.Process, error) { return t.auditProcess(ctx, settings) },
	}
	if backend.Proxy != nil {
		subject.Backend = backend.Proxy
	}
	runChecks(ctx, r, audittest.Checks(), subject)
	return nil
}

// auditProcess starts the plugin, as a server would.
func (t *trial) auditProcess(ctx context.Context, settings json.RawMessage) (*audittest.Process, error) {
	p := t.with(settings)
	handle, err := t.host.Audit(ctx, config.AuditSink{Name: p.Adapter, Plugin: p})
	if err != nil {
		return nil, err
	}
	all := t.host.Status()
	pid, killed := all[len(all)-1].PID, false
	var sink audit.Sink = struct{ audit.Sink }{handle} // without Read, which every handle has
	if handle.Reads() {
		sink = handle
	}
	return &audittest.Process{
		Sink: sink,
		Kill: func() { killed = syscall.Kill(pid, syscall.SIGKILL) == nil },
		Close: func() {
			if !killed {
				t.close(handle)
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			handle.Close(ctx)
		},
	}, nil
}

// backendPlaceholder stands in settings for the address of the kit's proxy in front of a backend.
const backendPlaceholder = "${backend}"

// proxied is the proxy in front of the plugin's backend, none when none was asked for.
type proxied struct{ *kit.Proxy }

func (p proxied) Close() {
	if p.Proxy != nil {
		p.Proxy.Close()
	}
}

// withBackend starts a proxy in front of --backend and puts its address into the settings.
func (t *trial) withBackend() (json.RawMessage, proxied, error) {
	settings := t.settings.JSON()
	if t.backend == "" {
		return settings, proxied{}, nil
	}
	if !bytes.Contains(settings, []byte(backendPlaceholder)) {
		return nil, proxied{}, fmt.Errorf("--backend %s: write %s in the settings where that address belongs", t.backend, backendPlaceholder)
	}
	proxy, err := kit.NewProxy(t.backend)
	if err != nil {
		return nil, proxied{}, err
	}
	return bytes.ReplaceAll(settings, []byte(backendPlaceholder), []byte(proxy.Address())), proxied{proxy}, nil
}

func (t *trial) runRegistry(ctx context.Context, r *report) error {
	settings, backend, err := t.withBackend()
	if err != nil {
		return err
	}
	defer backend.Close()
	p := t.with(settings)
	reg, err := t.host.Registry(ctx, config.Registry{Name: p.Adapter, Plugin: p})
	if err != nil {
		return err
	}
	defer t.close(reg)
	subject := registrytest.Subject{Registry: reg}
	if backend.Proxy != nil {
		subject.Backend = backend.Proxy
	}
	if t.bundlesFile != "" {
		raw, err := os.ReadFile(t.bundlesFile)
		if err != nil {
			return err
		}
		if subject.Known, err = registrytest.ParseKnown(raw); err != nil {
			return err
		}
	}
	runChecks(ctx, r, registrytest.Checks(), subject)
	return nil
}

// prepareAuth decides whether the adapter is one of OpenID providers, and reads its samples.
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

// authSettings are the adapter's settings as authtest takes them; "" when it takes some and none
// were given.
func (t *trial) authSettings() string {
	if t.settingsFile == "" && t.takesSettings() {
		return ""
	}
	return string(t.settings.JSON())
}

// settingsFor are the settings of the adapter for a provider of the kit, nil when it needs none.
func (t *trial) settingsFor(p *authtest.Provider) json.RawMessage {
	if p == nil {
		return t.settings.JSON()
	}
	settings, _ := authtest.SettingsFor(t.authSettings(), p)
	return json.RawMessage(settings)
}

// goodSettings are settings that the plugin must take, until end.
func (t *trial) goodSettings() (settings json.RawMessage, end func(), err error) {
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
	subject := authtest.Subject{Keys: t.keys, Samples: t.samples, Limits: authtest.LimitsOf(t.authSettings()), Heard: t.heard.String}
	subject.Revokes = slices.Contains(t.who.Capabilities, plugins.CapabilityRevocations)
	subject.Rechecks = slices.Contains(t.who.Capabilities, plugins.CapabilitySessions)
	subject.Binds = slices.Contains(t.who.Capabilities, plugins.CapabilityVerifyRequest)
	if t.samples != nil {
		subject.Revoking = t.samples.Revoking
	}
	subject.Open = func(ctx context.Context, p *authtest.Provider) (auth.Adapter, func(), error) {
		adapter, err := t.host.Auth(ctx, config.Auth{Plugin: t.with(t.settingsFor(p))})
		if err != nil {
			return nil, nil, err
		}
		return adapter, func() { t.close(adapter) }, nil
	}
	checks := authtest.Checks(subject)
	runChecks(ctx, r, checks, subject)
	complete := authtest.Subject{Keys: &authtest.Keys{}, Revokes: subject.Revokes, Rechecks: subject.Rechecks, Binds: subject.Binds}
	for _, all := range authtest.Checks(complete) {
		if !slices.ContainsFunc(checks, func(c kit.Check[authtest.Subject]) bool { return c.Name == all.Name }) {
			r.skipped(all.Name, t.whySkipped(all.Name))
		}
	}
	return nil
}

func (t *trial) whySkipped(check string) string {
	switch {
	case t.samples == nil:
		return "there are no --samples, and no ${issuer} in the settings"
	case strings.HasPrefix(check, "a token with "):
		return "the samples have no such token"
	}
	return "it is about adapters of OpenID providers"
}
