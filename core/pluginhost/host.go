package pluginhost

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/host"
	"github.com/ropewalk/ropewalk/plugins/server"
)

// Options configure a Host. A duration of 0 means the default named in its comment.
type Options struct {
	Home     string // the server's home: plugins are looked up in <home>/plugins
	Builtins Builtins
	Logger   hclog.Logger
	Version  string             // the server's version, passed to plugins with their settings
	Env      config.Environment // the server's environment; plugins get only the variables in a fixed list and in PassEnv
	PassEnv  []string           // names of the additional variables that plugins get
	Limits   config.PluginLimits

	// RequireSignature rejects plugins in the home that `plugin install` did not verify with one of
	// TrustedKeys.
	RequireSignature bool
	TrustedKeys      []string // minisign public keys

	StartTimeout time.Duration // from launch to the first response; default 10 s
	CallTimeout  time.Duration // the longest a call may take; default 10 s
	ReplaceWait  time.Duration // how long a call waits for a new generation; default 10 s
	PingEvery    time.Duration // how often a plugin's health is checked; default 2 s

	Metrics Metrics // may be nil

	// Output receives everything plugins write to standard error and standard output, as they write it, secrets
	// included. A server leaves it nil, and keeps only what goes to the log.
	Output io.Writer
}

// Metrics records measurements of plugins.
type Metrics interface {
	// PluginCall records a call to a plugin.
	PluginCall(kind plugins.Kind, name, adapter string, took time.Duration, err error)
}

// Builtins are the adapters in this executable, by kind and name. Each is served by a child process of the same
// executable, exactly like a third-party plugin.
type Builtins map[plugins.Kind]map[string]func() plugins.Plugin

// InProcess is the only adapter that may run inside the server, over the same contract: a single server's
// sessions do not need a second process.
const InProcess = "memory"

// Host starts plugins and keeps them running. It is safe for concurrent use.
type Host struct {
	opts Options
	log  hclog.Logger

	mu    sync.Mutex
	slots []reporter // one per open handle, in the order they were loaded
}

type reporter interface {
	status() Status
	executable() string
	probe(ctx context.Context) error
	attach(ctx context.Context, socket string, attached func(plugins.Info)) error
}

// New returns a Host that has not started anything.
func New(o Options) *Host {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.StartTimeout, 10 * time.Second},
		{&o.CallTimeout, 10 * time.Second},
		{&o.ReplaceWait, 10 * time.Second},
		{&o.PingEvery, 2 * time.Second},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	return &Host{opts: o, log: o.Logger}
}

// Status is the state of one loaded plugin.
type Status struct {
	Kind     plugins.Kind `json:"kind"`
	Name     string       `json:"name"`    // its name in the configuration: a registry's name, or else the adapter's
	Adapter  string       `json:"adapter"` // the built-in or file name
	Path     string       `json:"path"`    // "" for a built-in
	Version  string       `json:"version"`
	State    string       `json:"state"` // Running, Restarting, InProcessState or Attached
	PID      int          `json:"pid,omitempty"`
	Since    time.Time    `json:"since"` // start of the current generation
	Restarts int          `json:"restarts"`
	LastErr  string       `json:"lastError,omitempty"`       // why the last generation ended or did not start, or else why the plugin is degraded
	Protocol int          `json:"protocolVersion,omitempty"` // the negotiated one; 0 in process
	SHA256   string       `json:"sha256,omitempty"`          // the executable's SHA-256; "" for a built-in
	Degraded bool         `json:"degraded"`                  // the plugin responds, but most of its recent calls failed or were slow
	Calls    uint64       `json:"calls"`                     // total number of calls
	Failures uint64       `json:"errors"`                    // how many of those returned ErrUnavailable
	P50      float64      `json:"p50Seconds"`                // the median of the recent calls
	P99      float64      `json:"p99Seconds"`
	Memory   uint64       `json:"residentBytes,omitempty"` // the memory of its process; 0 in process
}

// The states of a plugin.
const (
	Running        = "running"
	Restarting     = "restarting"
	InProcessState = "in-process"
	Attached       = "attached" // calls go to a process that the server did not start; see Host.Attach
)

// Status returns the state of every loaded plugin, in the order they were loaded.
func (h *Host) Status() []Status {
	slots := h.loaded()
	all := make([]Status, len(slots))
	for i, s := range slots {
		all[i] = s.status()
	}
	return all
}

func (h *Host) loaded() []reporter {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.slots)
}

// Check starts an adapter, has it check its settings and stops it, without changing anything. The error is a
// *plugins.ConfigError for invalid settings, and plugins.ErrUnimplemented if the adapter can only check settings by
// applying them.
func (h *Host) Check(ctx context.Context, kind plugins.Kind, p config.Plugin) error {
	target, err := h.find(kind, p)
	if err != nil {
		return err
	}
	if target.impl != nil {
		return server.Validate(ctx, target.impl().Impl, h.settings(target))
	}
	target.kept, _ = h.replaced(target) // as a server would start it
	inst, err := h.launch(ctx, target)
	if err != nil {
		return err
	}
	defer inst.kill()
	ctx, cancel := context.WithTimeout(ctx, h.opts.StartTimeout)
	defer cancel()
	return host.NewControl(inst.conn).Validate(ctx, h.settings(target))
}

func (h *Host) opened(s reporter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slots = append(h.slots, s)
}

func (h *Host) closed(s reporter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, open := range h.slots {
		if open == s {
			h.slots = append(h.slots[:i:i], h.slots[i+1:]...)
			return
		}
	}
}
