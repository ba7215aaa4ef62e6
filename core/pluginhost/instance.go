package pluginhost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/tracing"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/host"
)

// instance is one plugin process that completed the handshake.
type instance struct {
	client   *goplugin.Client
	conn     *grpc.ClientConn
	protocol int // the negotiated protocol version
	info     plugins.Info
	run      *runner
	since    time.Time
}

// newestProtocol is the newest protocol version this server supports. So far every kind has only one.
const newestProtocol = 1

// hostEnv returns the variables of the server's environment that a plugin may see, apart from those listed in
// plugins.passEnv.
func hostEnv() []string {
	return []string{"PATH", "TMPDIR", "TZ", "LANG", "LC_ALL", "SSL_CERT_FILE", "SSL_CERT_DIR"}
}

// launch starts a plugin and requests its Info. If it fails, no process is left behind.
func (h *Host) launch(ctx context.Context, t target) (_ *instance, err error) {
	log := h.log.Named(string(t.kind) + "." + t.name)
	mtls, certificate, err := mutualTLS()
	if err != nil {
		return nil, err
	}
	command := h.command(t)
	command.Env = append(command.Env, clientCert+"="+certificate)
	inst := &instance{run: newRunner(t.name, command, secretsOf(t.config.Settings.JSON()), h.opts.Limits), since: time.Now()}
	inst.run.stderr.copyTo = h.opts.Output
	versions := map[int]goplugin.PluginSet{}
	for version := 1; version <= newestProtocol; version++ {
		versions[version] = goplugin.PluginSet{string(t.kind): connector{}}
	}
	printed := inst.run.stderr.tee(log.StandardWriter(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}))
	inst.client = goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  host.Handshake(t.kind),
		VersionedPlugins: versions,
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		RunnerFunc:       inst.run.provide,
		StartTimeout:     h.opts.StartTimeout,
		TLSConfig:        mtls,
		SkipHostEnv:      true,
		Logger:           quietLogger{log},
		// Output outside a plugin's log may explain a failure, so none of it may be lost.
		SyncStdout: printed, SyncStderr: printed, PluginLogBufferSize: lineBytes,
		GRPCDialOptions: append(tracing.PluginCalls(string(t.kind), t.name), host.DialOption(), grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(plugins.MaxMessage), grpc.MaxCallSendMsgSize(plugins.MaxMessage))),
	})
	defer func() {
		if err != nil {
			inst.kill()
		}
	}()
	if err := inst.connect(t); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, h.opts.StartTimeout)
	defer cancel()
	if inst.info, err = host.NewControl(inst.conn).Info(ctx); err != nil {
		return nil, t.failed(fmt.Sprintf("it does not respond to Info: %v", err), "it must serve ropewalk.plugin.v1.PluginService with TLS as PLUGIN_CLIENT_CERT requires; see docs/plugins.md")
	}
	if inst.info.Kind != t.kind {
		other := t.failed(fmt.Sprintf("it is a plugin of kind %s", inst.info.Kind), fmt.Sprintf("configure it in the section for %s plugins", inst.info.Kind))
		other.maybeOtherKind = true
		return nil, other
	}
	if err = inst.ping(ctx); err != nil {
		return nil, t.failed(fmt.Sprintf("its health service does not report SERVING for the service plugin: %v", err), "it must serve grpc.health.v1.Health; see docs/plugins.md")
	}
	log.Debug("plugin started", "version", inst.info.Version, "protocol", inst.protocol, "pid", inst.run.ID(), "capabilities", inst.info.Capabilities)
	return inst, nil
}

// quietLogger logs all of go-plugin's own messages at debug. They are about processes that exited or did not exit. The
// start error or the supervisor reports the same events, with the reason. A plugin's own log messages use Named and
// keep their level.
type quietLogger struct{ hclog.Logger }

// Info logs at debug.
func (l quietLogger) Info(msg string, args ...any) { l.Debug(msg, args...) }

// Warn logs at debug.
func (l quietLogger) Warn(msg string, args ...any) { l.Debug(msg, args...) }

// Error logs at debug.
func (l quietLogger) Error(msg string, args ...any) { l.Debug(msg, args...) }

func (i *instance) connect(t target) error {
	protocol, err := i.client.Client()
	if err != nil {
		return t.handshakeError(err, i.run)
	}
	conn, err := protocol.Dispense(string(t.kind))
	if err != nil {
		return t.handshakeError(err, i.run)
	}
	i.conn, i.protocol = conn.(*grpc.ClientConn), i.client.NegotiatedVersion()
	return nil
}

// configure sends a plugin its settings, once.
func (i *instance) configure(ctx context.Context, h *Host, t target) error {
	settings := h.settings(t)
	if err := os.MkdirAll(settings.DataDir, 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, h.opts.StartTimeout)
	defer cancel()
	err := secretsOf(settings.JSON).redactError(host.NewControl(i.conn).Configure(ctx, settings))
	if _, invalid := errors.AsType[*plugins.ConfigError](err); err == nil || invalid {
		return err
	}
	switch {
	case errors.Is(err, host.ErrDisconnected):
		return i.crashedInConfigure(ctx, t)
	case errors.Is(err, context.DeadlineExceeded):
		return t.failed(fmt.Sprintf("it did not accept its settings within %v", h.opts.StartTimeout), "raise plugins.startTimeoutSeconds (or the command's --start-timeout), or find out what its Configure is waiting for")
	case errors.Is(err, plugins.ErrUnavailable):
		return t.failed(fmt.Sprintf("its backend cannot be reached: %v", err), "check its address in the settings, and that it is running")
	}
	e := t.failed(fmt.Sprintf("Configure failed: %v", err), "this is a bug in the plugin")
	e.Stderr = i.run.stderr.String()
	return e
}

// crashedInConfigure describes a process that exited during Configure.
func (i *instance) crashedInConfigure(ctx context.Context, t target) error {
	soon, cancel := context.WithTimeout(ctx, exitDelay)
	defer cancel()
	select {
	case <-i.done():
	case <-soon.Done():
		return t.failed("its connection broke during Configure", "")
	}
	i.run.stderr.wait()
	e := t.failed(fmt.Sprintf("it crashed during Configure (%s)", i.run.exitReason()), "")
	e.Stderr = i.run.stderr.String()
	return e
}

// settings returns the configuration to send to a plugin.
func (h *Host) settings(t target) plugins.Config {
	name := t.name
	if t.kind == plugins.KindAuth || t.kind == plugins.KindAudit {
		name = t.label // two plugins of one adapter must not share a directory
	}
	return plugins.Config{
		JSON:        t.config.Settings.JSON(),
		DataDir:     filepath.Join(h.opts.Home, "plugins", "data", fmt.Sprintf("%s-%s", t.kind, name)),
		HostVersion: h.opts.Version, HostCapabilities: hostCapabilities(),
	}
}

// hostCapabilities returns the optional parts of the contracts that the server uses, by their names in
// proto/ropewalk/plugin/v1.
func hostCapabilities() []string {
	return []string{plugins.CapabilityExclusive, plugins.CapabilityRevocations, "session.replace", plugins.CapabilityVerifyRequest}
}

var errNotServing = errors.New("the plugin is not serving")

// ping calls the plugin's health service.
func (i *instance) ping(ctx context.Context) error {
	response, err := grpc_health_v1.NewHealthClient(i.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: goplugin.GRPCServiceName})
	if err != nil {
		return err
	}
	if response.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("%w: it reports %s", errNotServing, response.GetStatus())
	}
	return nil
}

// deathReason describes how the process exited, with the last lines that it wrote.
func (i *instance) deathReason() error {
	i.run.stderr.wait()
	if wrote := i.run.stderr.String(); wrote != "" {
		return fmt.Errorf("its process exited: %s; its last output: %s", i.run.exitReason(), wrote)
	}
	return fmt.Errorf("its process exited: %s", i.run.exitReason())
}

// done returns a channel that is closed when the process and all its descendants have exited.
func (i *instance) done() <-chan struct{} { return i.run.process().Done() }

// kill asks the plugin to exit, then kills it. It returns when the whole process tree has exited.
func (i *instance) kill() {
	i.client.Kill()
	if i.run.stderr.copyTo != nil {
		i.run.stderr.wait()
	}
}

// exitedOnRequest reports whether a plugin exited after it was asked to.
func (i *instance) exitedOnRequest() bool {
	exit, failed := errors.AsType[*process.ExitError](i.run.process().Err())
	return !failed || exit.Signal != syscall.SIGKILL.String()
}

func (h *Host) command(t target) process.Command {
	c := process.Command{Path: t.path, Name: t.title()}
	names := append(hostEnv(), h.opts.PassEnv...)
	for name, value := range h.opts.Env.Only(names...) {
		c.Env = append(c.Env, name+"="+value)
	}
	if t.path != "" {
		c.Verified = &process.Verified{Path: cmp.Or(t.kept, t.path), SHA256: t.sha256}
		return c
	}
	c.Path, c.Args = process.Self(), []string{"plugin", "serve", string(t.kind), t.name}
	return c
}

// title returns the plugin's name for the process list. It ends with the path, because plugins find their own file from
// it.
func (t target) title() string {
	title := fmt.Sprintf("ropewalk-plugin %s-%s", t.kind, t.label)
	if t.path != "" {
		title += " " + t.path
	}
	return title
}

// connector exposes the plain connection, on which the contract packages create their clients.
type connector struct {
	goplugin.NetRPCUnsupportedPlugin
}

func (connector) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error { return nil }

func (connector) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}
