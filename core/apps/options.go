package apps

import (
	"cmp"
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

// Records stores what is installed. A write that returns nil survives a crash.
type Records interface {
	// AddInstallation returns core.CodeAlreadyInstalled if the workspace has an app with this name.
	AddInstallation(ctx context.Context, i core.Installation) error
	// ChangeInstallation applies change to a record atomically. It returns core.CodeNotFound if there is no such app.
	ChangeInstallation(ctx context.Context, workspace, name string, change func(*core.Installation) error) (core.Installation, error)
	// DeleteInstallation deletes a record. It is not an error if the record does not exist or has a different ID.
	DeleteInstallation(ctx context.Context, workspace, name, id string) error
	// Uninstall removes a record. RestoreInstallation can bring it back until the given time. It is not an error
	// if the record does not exist or has a different ID.
	Uninstall(ctx context.Context, workspace, name, id string, until time.Time) error
	// RestoreInstallation returns core.CodeNotFound if no app of this name was uninstalled, or if the time to restore
	// it has passed.
	RestoreInstallation(ctx context.Context, workspace, name string) (core.Installation, error)
	// Uninstalled returns the records that Uninstall removed and PurgeUninstalled has not deleted yet.
	Uninstalled(ctx context.Context) ([]core.Installation, error)
	// PurgeUninstalled deletes the records that can no longer be restored, with the accounts and approvals of their
	// apps. With a name, it deletes only the uninstalled record of that name, immediately.
	PurgeUninstalled(ctx context.Context, workspace, name string) error
	// Installation returns core.CodeNotFound if there is no such app.
	Installation(ctx context.Context, workspace, name string) (core.Installation, error)
	Installations(ctx context.Context) ([]core.Installation, error)
	// Files writes the content that Cluster.PutFiles stored under sum. It returns core.CodeNotFound if there is none.
	Files(ctx context.Context, sum string, to io.Writer) error
	// PutSetting stores a named value. Settings returns the values whose names start with prefix, by name. Among other
	// things, they record what was learned about bundles.
	PutSetting(ctx context.Context, name, value string) error
	Settings(ctx context.Context, prefix string) (map[string]string, error)
	// PutKeptLists replaces the stored lists of an app. KeptLists returns them, or core.CodeNotFound if none are stored
	// with this hash (see app.listsSum). They are deleted with the installation.
	PutKeptLists(ctx context.Context, workspace, app, sum, record string) error
	KeptLists(ctx context.Context, workspace, app, sum string) (record string, err error)
}

// Cluster connects the servers that share the same records.
type Cluster interface {
	// Changes sends the changes that other servers make to the records, until ctx ends. Then it closes the channel.
	// Earlier changes are not sent.
	Changes(ctx context.Context) <-chan core.Change
	// PutFiles stores content under its SHA-256 for other servers. It does not read content if it is already stored.
	PutFiles(ctx context.Context, sum string, content io.Reader) error
	// ServerID returns the ID of this server.
	ServerID() string
	// RequestPeer sends a request about a topic to another server. It returns core.CodeNotFound if that server no
	// longer exists, and core.CodeUnavailable if it stopped before it answered.
	RequestPeer(ctx context.Context, server, topic string, question json.RawMessage) (json.RawMessage, error)
	// ServePeers calls answer for each request from another server about a topic until ctx ends, up to limit at a time.
	ServePeers(ctx context.Context, topic string, limit int, answer func(ctx context.Context, question json.RawMessage) json.RawMessage)
}

// Publisher publishes events. Publish never blocks.
type Publisher interface{ Publish(core.Event) }

// Accounts manages the linked accounts for remote apps. *accounts.Manager implements it.
type Accounts interface {
	// Authorizer provides the tokens of an account.
	Authorizer(account string) remote.Authorizer
	// Discover reports whether people can link accounts for a remote app that rejected a request without credentials.
	Discover(ctx context.Context, r core.Remote, c remote.Challenge) bool
	// Published returns the lists that an app is published with. They are empty if it has not been published yet.
	Published(ctx context.Context, workspace, app string) (core.AppLists, error)
	// Listed returns the lists that an app last sent to an account, or to all accounts if account is "", by Account.ID.
	Listed(ctx context.Context, workspace, app, account string) (map[string]core.AppLists, error)
	// Publish stores the lists of an account. It publishes the app with them if the account may do so, and reports
	// whether it did.
	Publish(ctx context.Context, account string, lists core.AppLists) (published bool, err error)
}

// Metrics records measurements of the apps.
type Metrics interface {
	// ClientOperation records a request to an app.
	ClientOperation(app, method string, took time.Duration, err error)
	// AppStart records an attempt to start an app.
	AppStart(app string, took time.Duration, err error)
	// AppRestart records that an app is started again after it stopped on its own.
	AppRestart(app string)
	// AppDeath records that a running app exited on its own.
	AppDeath(app string)
	// AppWakeUp records that a call made the server retry a remote app immediately.
	AppWakeUp(app string)
}

type noMetrics struct{}

func (noMetrics) ClientOperation(string, string, time.Duration, error) {}
func (noMetrics) AppStart(string, time.Duration, error)                {}
func (noMetrics) AppRestart(string)                                    {}
func (noMetrics) AppDeath(string)                                      {}
func (noMetrics) AppWakeUp(string)                                     {}

// Options configures a Manager. Durations and counts that are 0 have the stated default.
type Options struct {
	Home       string // the server's home directory, absolute
	Version    string // the server's version, reported to apps
	Records    Records
	Cluster    Cluster // nil for a server that is not in a cluster
	Events     Publisher
	Registries []source.NamedRegistry // queried in this order
	Configured map[string]config.App  // apps.<name> in the configuration; they are in the default workspace
	Install    config.Install         // what may be installed over the API
	Logger     hclog.Logger
	Metrics    Metrics // nil to record nothing

	HostEnv map[string]string // the host's environment; apps get only the variables on an allowlist
	Remote  remote.Options    // how remote apps are reached, and which addresses are allowed

	Accounts    Accounts             // nil if linked accounts are not supported
	Pins        *trust.Pins          // nil to allow all tools
	Sandbox     config.Sandbox       // for apps without their own sandbox settings in the configuration
	Confinement instance.Confinement // what this machine supports
	Protected   []string             // more paths that cannot be granted, in addition to Home and Confinement

	Policy              *Policy       // default: DefaultPolicy
	StartTimeout        time.Duration // from launch to the first list of tools; default 60 s
	Grace               time.Duration // how long a process may take to exit before it is killed; default 5 s
	Idle                time.Duration // how long until an unused app sleeps, unless configured per app; 0 means never
	MaxAwake            int           // when more apps than this are awake, idle ones that may sleep are put to sleep; 0 means no limit
	MemoryIsShort       func() bool   // whether memory is short on this machine or for the server; nil means never
	RestartWait         time.Duration // how long a call waits for an app that is starting; default 10 s
	CallTimeout         time.Duration // how long an app may be silent during a call; default 5 min
	MaxCalls            int           // calls in flight per app, of which one user may have a quarter; default 2048
	MaxAnswer           int           // bytes per message from an app; default 16 MiB
	StartsAtOnce        int           // apps that start concurrently; default 8
	StartPatience       time.Duration // how long a starting app keeps its slot; default 2 s
	MaxSessionInstances int           // size of the session pool across all workspaces; default 64
	SessionInstanceIdle time.Duration // how long an instance without calls is kept; default 5 min
	UndoFor             time.Duration // how long an uninstalled app can be restored; default 1 min
	InstallTimeout      time.Duration // for fetching and unpacking, before the launch; default 10 min
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
	o.StartTimeout = cmp.Or(o.StartTimeout, time.Minute)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	o.RestartWait = cmp.Or(o.RestartWait, 10*time.Second)
	o.CallTimeout = cmp.Or(o.CallTimeout, 5*time.Minute)
	o.Remote.HeaderTimeout = max(cmp.Or(o.Remote.HeaderTimeout, 5*time.Minute), o.CallTimeout) // requests other than calls wait as well
	o.StartPatience = cmp.Or(o.StartPatience, 2*time.Second)
	o.UndoFor = cmp.Or(o.UndoFor, UndoFor)
	o.InstallTimeout = cmp.Or(o.InstallTimeout, 10*time.Minute)
	o.SessionInstanceIdle = cmp.Or(o.SessionInstanceIdle, 5*time.Minute)
	o.MaxCalls = cmp.Or(o.MaxCalls, 2048)
	o.MaxAnswer = cmp.Or(o.MaxAnswer, 16<<20)
	o.MaxSessionInstances = cmp.Or(o.MaxSessionInstances, 64)
	o.StartsAtOnce = cmp.Or(o.StartsAtOnce, 8)
}
