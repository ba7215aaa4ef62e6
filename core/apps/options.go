package apps

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// Records keeps what is installed. A nil error of a write means that it survives a crash.
type Records interface {
	// AddInstallation answers core.CodeAlreadyInstalled when the workspace has an app of that name.
	AddInstallation(ctx context.Context, i core.Installation) error
	// ChangeInstallation answers core.CodeNotFound when there is no such app. What is kept does not
	// change between what change is given and what it leaves.
	ChangeInstallation(ctx context.Context, workspace, name string, change func(*core.Installation) error) (core.Installation, error)
	// DeleteInstallation of what does not exist, or has another id by now, is no error.
	DeleteInstallation(ctx context.Context, workspace, name, id string) error
	// Installation answers core.CodeNotFound when there is no such app.
	Installation(ctx context.Context, workspace, name string) (core.Installation, error)
	Installations(ctx context.Context) ([]core.Installation, error)
	// Files writes what Cluster.PutFiles kept; core.CodeNotFound when it is not kept.
	Files(ctx context.Context, sum string, to io.Writer) error
	// PutSetting keeps a value under a name, and Settings are those whose names begin with prefix: what
	// was found out about bundles.
	PutSetting(ctx context.Context, name, value string) error
	Settings(ctx context.Context, prefix string) (map[string]string, error)
}

// Cluster is where servers that share their records find out about each other.
type Cluster interface {
	// Changes tells what other servers have changed in the records, until ctx ends; the channel is
	// closed then. What was changed before the call is not told.
	Changes(ctx context.Context) <-chan core.Change
	// PutFiles keeps what content gives under its sha256, for other servers. What is kept already is
	// not read again.
	PutFiles(ctx context.Context, sum string, content io.Reader) error
	// ServerID is the name of this server among the others.
	ServerID() string
	// RequestPeer has another server answer a question: core.CodeNotFound when there is no such server any
	// more, core.CodeUnavailable when it ended before it answered.
	RequestPeer(ctx context.Context, server string, question json.RawMessage) (json.RawMessage, error)
	// ServePeers calls handle for each question of another server, until ctx ends.
	ServePeers(ctx context.Context, answer func(ctx context.Context, question json.RawMessage) json.RawMessage)
}

// Publisher takes events without ever waiting.
type Publisher interface{ Publish(core.Event) }

// NamedRegistry is a registry under the name the configuration gives it.
type NamedRegistry struct {
	Name     string
	Registry registry.Registry
}

// Options is what a Manager is made of. Durations and counts that are 0 have the default given.
type Options struct {
	Home       string // the service's home directory, absolute
	Version    string // the server's own version, told to apps
	Records    Records
	Cluster    Cluster // nil for a server that has its records to itself
	Events     Publisher
	Registries []NamedRegistry       // asked in this order
	Configured map[string]config.App // apps.<name> of the configuration; they live in the default workspace
	Logger     hclog.Logger

	HostEnv map[string]string  // the host's environment; only an allow-list of it reaches an app
	Remote  link.RemoteOptions // how remote apps are reached, and which addresses may be

	Policy              *Policy       // DefaultPolicy
	StartTimeout        time.Duration // from launch to the first list of tools: 60 s
	Grace               time.Duration // from asking a process to end to killing it: 5 s
	RestartWait         time.Duration // how long a call waits for an app that is starting: 10 s
	CallTimeout         time.Duration // how long a call may take, or be without progress: 5 min
	MaxCalls            int           // calls in flight to one app: 512
	StartsAtOnce        int           // apps that are brought up or restarted at a time: 8
	StartPatience       time.Duration // how long a slow one of them keeps its place: 2 s
	MaxSessionInstances int           // instances of apps beside their shared ones, of all workspaces: 64
	SessionInstanceIdle time.Duration // how long one is kept that nobody uses: 5 min
	InstallTimeout      time.Duration // for fetching and unpacking, before the launch: 10 min
}

func (o *Options) setDefaults() {
	if o.Policy == nil {
		p := DefaultPolicy()
		o.Policy = &p
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.StartTimeout, time.Minute},
		{&o.Grace, 5 * time.Second},
		{&o.RestartWait, 10 * time.Second},
		{&o.CallTimeout, 5 * time.Minute},
		{&o.StartPatience, 2 * time.Second},
		{&o.InstallTimeout, 10 * time.Minute},
		{&o.SessionInstanceIdle, 5 * time.Minute},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.MaxCalls == 0 {
		o.MaxCalls = 512
	}
	if o.MaxSessionInstances == 0 {
		o.MaxSessionInstances = 64
	}
	if o.StartsAtOnce == 0 {
		o.StartsAtOnce = 8
	}
}
