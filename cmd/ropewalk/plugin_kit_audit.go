package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/audit/audittest"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// Placeholders in an audit sink's settings for what the kit supplies.
const (
	dataPlaceholder     = "${data}"     // a directory for its files
	receiverPlaceholder = "${receiver}" // host and port of a receiver of records
)

// prepareAudit creates what the settings refer to.
func (t *trial) prepareAudit() error {
	settings := t.settings.JSON()
	t.data = filepath.Join(t.home, "plugins", "data", "audit-"+t.plugin.Adapter) // the plugin's own directory
	if bytes.Contains(settings, []byte(dataPlaceholder)) {
		dir := filepath.Join(t.home, "files")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		t.data = dir
		settings = bytes.ReplaceAll(settings, []byte(dataPlaceholder), []byte(dir))
	}
	if bytes.Contains(settings, []byte(receiverPlaceholder)) {
		listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it returns at once
		if err != nil {
			return err
		}
		t.receiver = &audittest.Receiver{}
		t.receiving = &http.Server{Handler: t.receiver, ReadHeaderTimeout: 10 * time.Second}
		go func() { _ = t.receiving.Serve(listener) }()
		if t.proxy, err = kit.NewProxy(listener.Addr().String()); err != nil {
			return err
		}
		settings = bytes.ReplaceAll(settings, []byte(receiverPlaceholder), []byte(t.proxy.Address()))
	}
	t.settings = config.NewSettings(settings)
	return nil
}

func (t *trial) runAudit(ctx context.Context, r *report) error {
	settings, backend, err := t.withBackend()
	if err != nil {
		return err
	}
	defer backend.Close()
	subject := audittest.Subject{
		Exclusive: slices.Contains(t.who.Capabilities, plugins.CapabilityExclusive), Data: t.data, Fixed: t.backend == noBackend || !t.takesSettings(),
		Open: func(ctx context.Context) (*audittest.Process, error) {
			return t.auditProcess(ctx, t.with(settings))
		},
	}
	if backend.Proxy != nil {
		subject.Backend = backend.Proxy
	}
	if t.receiver != nil {
		subject.Receiver, subject.Backend = t.receiver, t.proxy
	}
	judge(ctx, r, audittest.Properties(), t.kit, subject)
	return nil
}

// auditProcess starts the plugin as a server would.
func (t *trial) auditProcess(ctx context.Context, p config.Plugin) (*audittest.Process, error) {
	handle, err := t.host.Audit(ctx, p)
	if err != nil {
		return nil, err
	}
	at := len(t.host.Status()) - 1
	killed := false
	var sink audit.Sink = struct{ audit.Sink }{handle} // hides Read, which every handle has
	if handle.Reads() {
		sink = handle
	}
	return &audittest.Process{
		Sink: sink,
		Kill: func() { killed = syscall.Kill(t.host.Status()[at].PID, syscall.SIGKILL) == nil },
		Close: func() {
			if !killed {
				t.close(handle)
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			handle.Close(ctx)
		},
		Limit: func(length int64) error { return limitFiles(t.host.Status()[at].PID, length) },
	}, nil
}
