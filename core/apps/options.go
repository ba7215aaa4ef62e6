package apps

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/core/trust"
)

// Records keeps what is installed. A nil error of a write means that it survives a crash.
type Records interface {
	// AddInstallation returns core.CodeAlreadyInstalled when the workspace has an app of that name.
	AddInstallation(ctx context.Context, i core.Installation) error
	// ChangeInstallation returns core.CodeNotFound when there is no such app. The record does not change
	// between what change is given and what it leaves.
	ChangeInstallation(ctx context.Context, workspace, name string, change func(*core.Installation) error) (core.Installation, error)
	// DeleteInstallation of a record that does not exist, or has another ID by now, is no error.
	DeleteInstallation(ctx context.Context, workspace, name, id string) error
	// Installation returns core.CodeNotFound when there is no such app.
	Installation(ctx context.Context, workspace, name string) (core.Installation, error)
	Installations(ctx context.Context) ([]core.Installation, error)
	// Files writes what Cluster.PutFiles stored; core.CodeNotFound when it is not stored.
	Files(ctx context.Context, sum string, to io.Writer) error
	// PutSetting stores a value under a name, and Settings returns those whose names begin with prefix:
	// what was found out about bundles.
	PutSetting(ctx context.Context, name, value string) error
	Settings(ctx context.Context, prefix string) (map[string]string, error)
	// PutKeptLists stores the lists of an app in place of those before, and KeptLists returns them: core.CodeNotFound
	// when there are none with this hash of what decides them. They go with the installation.
	PutKeptLists(ctx context.Context, workspace, app, sum, record string) error
	KeptLists(ctx context.Context, workspace, app, sum string) (record string, err error)
}

// Cluster connects the servers that share their records.
type Cluster interface {
	// Changes sends what other servers have changed in the records, until ctx ends; the channel is closed
	// then. Earlier changes are not sent.
	Changes(ctx context.Context) <-chan core.Change
	// PutFiles stores content under its SHA-256 for other servers. It is not read when it is stored
	// already.
	PutFiles(ctx context.Context, sum string, content io.Reader) error
	// ServerID is this server's id.
	ServerID() string
	// RequestPeer sends a request about a topic to another server: core.CodeNotFound when there is no such server any more,
	// core.CodeUnavailable when it ended before it answered.
	RequestPeer(ctx context.Context, server, topic string, question json.RawMessage) (json.RawMessage, error)
	// ServePeers calls answer for each request of another server about a topic, until ctx ends.
	ServePeers(ctx context.Context, topic string, answer func(ctx context.Context, question json.RawMessage) json.RawMessage)
}

// Publisher publishes events and never waits.
type Publisher interface{ Publish(core.Event) }

// Pins decides which tools of an app may be used. *trust.Pins implements it.
type Pins interface {
	// Check returns the tools that may be used, and those that are held back.
	CheckOffer(ctx context.Context, l trust.Listing, offer core.Offer, instructions string) (core.Offer, error)
	// Revision changes when a list that was checked earlier must be checked again; then Watch's changed
	// is called, with "" for all apps.
	Revision() uint64
	Watch(changed func(workspace, app string) (checked <-chan struct{}))
}

// Accounts are the linked accounts that remote apps are called with. *accounts.Manager implements it.
type Accounts interface {
	// Authorizer gives the tokens of an account.
	Authorizer(account string) remote.Authorizer
	// Discover reports whether people can link accounts at a remote app that refused a request without credentials.
	Discover(ctx context.Context, r core.Remote, c remote.Challenge) bool
	// Published returns the lists that an app is published with; none when it was not published yet.
	Published(ctx context.Context, workspace, app string) (core.AppLists, error)
	// Publish publishes an app with the lists of an account, if that may, and reports whether it did.
	Publish(ctx context.Context, account string, lists core.AppLists) (published bool, err error)
}

// Metrics measures the apps.
type Metrics interface {
	// ClientOperation records a request to an app.
	ClientOperation(app, method string, took time.Duration, err error)
	// AppStart records an attempt to start an app.
	AppStart(app string, took time.Duration, err error)
	// AppRestart records that an app is started again after it stopped by itself.
	AppRestart(app string)
	// AppDeath records that a running app stopped by itself.
	AppDeath(app string)
	// AppWakeUp records that a call made the server try a remote app at once.
	AppWakeUp(app string)
}

// noMetrics measures nothing.
type noMetrics struct{}

func (noMetrics) ClientOperation(string, string, time.Duration, error) {}
func (noMetrics) AppStart(string, time.Duration, error)                {}
func (noMetrics) AppRestart(string)                                    {}
func (noMetrics) AppDeath(string)                                      {}
func (noMetrics) AppWakeUp(string)                                     {}

// Options is what a Manager is made of. Durations and counts that are 0 have the default given.
type Options struct {
	Home       string // the service's home directory, absolute
	Version    string // the server's version, which apps see
	Records    Records
	Cluster    Cluster // nil for a server on its own
	Events     Publisher
	Registries []source.NamedRegistry // asked in this order
	Configured map[string]config.App  // apps.<name> of the configuration; they live in the default workspace
	Install    config.Install         // what may be installed over the API
	Logger     hclog.Logger
	Metrics    Metrics // nil measures nothing

	HostEnv map[string]string // the host's environment; apps see an allow-list of it
	Remote  remote.Options    // how remote apps are reached, and which addresses are allowed

	Accounts    Accounts             // nil when there are none
	Pins        Pins                 // nil lets all tools be used
	Sandbox     config.Sandbox       // of an app whose own section of the configuration says nothing else
	Confinement instance.Confinement // what this machine gives
	Closed      []string             // paths of the server that nobody grants, besides Home and those of Confinement
	Ports       func() []int         // ports of this machine that nobody grants: of the server, its database, its plugins; nil for none

	Policy              *Policy       // DefaultPolicy
	StartTimeout        time.Duration // from launch to the first list of tools: 60 s
	Grace               time.Duration // from asking a process to end to killing it: 5 s
	Idle                time.Duration // unused for this long, an app whose own section of the configuration says nothing else sleeps: never
	MaxAwake            int           // processes of apps above this number sleep, where they may: no limit
	MemoryIsShort       func() bool   // whether this machine, or what the server may have of it, is short of memory; nil for never
	RestartWait         time.Duration // how long a call waits for an app that is starting: 10 s
	CallTimeout         time.Duration // how long an app may be silent during a call: 5 min
	MaxCalls            int           // calls in flight to one app: 512
	MaxAnswer           int           // bytes of one message of an app: 16 MiB
	StartsAtOnce        int           // apps that start at the same time: 8
	StartPatience       time.Duration // how long an app that starts keeps its place: 2 s
	MaxSessionInstances int           // of the session pool, in all workspaces: 64
	SessionInstanceIdle time.Duration // how long one without calls is kept: 5 min
	InstallTimeout      time.Duration // for fetching and unpacking, before the launch: 10 min
}

func (o *Options) setDefaults() {
	if o.Policy == nil {
		p := DefaultPolicy()
		o.Policy = &p
	}
	if o.Metrics == nil {
		o.Metrics = noMetrics{}
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
	if o.MaxAnswer == 0 {
		o.MaxAnswer = 16 << 20
	}
	if o.MaxSessionInstances == 0 {
		o.MaxSessionInstances = 64
	}
	if o.StartsAtOnce == 0 {
		o.StartsAtOnce = 8
	}
}
