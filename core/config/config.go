package config

import (
	"net/netip"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config/layer"
	"github.com/ropewalk/ropewalk/core/trust"
)

// Config is everything an operator can decide. It is frozen: Load makes it, nobody changes it,
// and a reload makes another one. Every default is filled in and every value has been checked.
//
// The tags name the section of the file, and say once whether a reload applies a change of it or only a restart does
// (Reload). Where one section has both, the fields of its type have tags too.
type Config struct {
	Home string `section:"home" reload:"restart"` // the service home, absolute
	File string // the configuration file, absolute; "" when there is none

	HTTP           HTTP           `section:"http" reload:"restart"`
	APIKey         core.Secret    `section:"apiKey" reload:"restart"` // SERVICE_API_KEY; "" means there is none
	AllowedOrigins []string       `section:"http" reload:"restart"`   // scheme://host[:port], lower case; empty means same-origin only
	Auth           []Auth         `section:"auth" reload:"applied"`   // in the order in which tokens without a known issuer are tried; empty means none
	SessionStore   Plugin         `section:"sessionStore" reload:"applied"`
	Storage        Storage        `section:"storage" reload:"restart"`
	Registries     []Plugin       `section:"registries" reload:"applied"` // in the order they are asked
	Features       Features       `section:"features" reload:"applied"`
	Apps           map[string]App `section:"apps" reload:"applied"` // apps to have installed, by server name
	MaxAwake       int            `section:"apps" reload:"applied"` // apps above this number are put to sleep, where they may; 0 for no limit
	MCP            MCP            `section:"mcp" reload:"restart"`
	Chat           Chat           `section:"chat" reload:"applied"`
	Models         Models         `section:"models" reload:"applied"`
	Skills         Skills         `section:"skills" reload:"restart"`
	Log            Log            `section:"log" reload:"restart"`
	Audit          Audit          `section:"audit" reload:"restart"`
	Tools          Tools          `section:"tools" reload:"restart"`
	Views          []View         `section:"views" reload:"applied"` // by name
	Install        Install        `section:"install" reload:"applied"`
	Limits         Limits         `section:"limits" reload:"restart"`
	Sandbox        Sandbox        `section:"sandbox" reload:"restart"` // of an app whose own section says nothing else
	Idle           time.Duration  `section:"idle" reload:"restart"`    // unused for this long, an app whose own section says nothing else is put to sleep; 0 for never, the default only without MaxAwake
	Plugins        Plugins        `section:"plugins" reload:"restart"`

	// Environment is the server's own environment, complete. Bundles and plugins get only what
	// their allow-lists name.
	Environment Environment

	// Warnings are sentences for the start-up log: allowed, but not wise.
	Warnings []string

	places    layer.Places
	effective []Value
}

// Dev reports whether the server runs without authentication: neither an API key nor an auth
// adapter is set. Load has then made sure that it listens on loopback only.
func (c *Config) Dev() bool { return c.APIKey == "" && len(c.Auth) == 0 }

// HTTP is where the server listens and whom it believes.
type HTTP struct {
	Host           string         // name or address to listen on
	Port           int            // 0 takes a free one
	TLS            TLS            // of the listener; without it, it speaks plain HTTP
	ShutdownDelay  time.Duration  // of the listener, while /readyz fails
	TrustedProxies []netip.Prefix // whose X-Forwarded-* headers count
	AllowedHosts   []string       // extra Host header values to accept, host or host:port, lower case
	BaseURL        string         // the public address without a trailing slash; "" when not set
	Console        bool           // whether the console is served at /
	Metrics        string         // host:port of a separate listener for the metrics; "" for none
	ViewOrigin     string         // another origin of this server, for views of apps; "" when not set
}

// TLS names the certificate of the listener and its key, both PEM files, absolute. They are read again after they
// changed. Both are "" for none.
type TLS struct{ CertFile, KeyFile string }

// Plugin says which adapter fills a place, and carries its settings.
type Plugin struct {
	Name     string   // what the operator calls it, by default the adapter's name; unique among its kind
	Adapter  string   // a built-in of this name, else <home>/plugins/<kind>-<adapter>
	Path     string   // the plugin's executable, absolute; "" unless set, SHA256 is then set too
	SHA256   string   // lower-case hex
	Settings Settings // every key of the section that is not the server's own
	At       string   // the section's path, such as "registries[1]", for Config.Problem
}

// Auth is one auth adapter. ClientID and RedirectURI are in Settings as well: they concern the server and
// the adapter.
type Auth struct {
	Plugin
	Audiences   []string // accepted beside the addresses of /mcp
	AnyAudience bool     // audience: any turns the check off
	Admins      []string // of the organization: email:ADDRESS, group:NAME, subject:NAME, or without a type (access.Enrollment)
	Join        []Join
	SameAs      []string // issuers that know the same people by the same verified email
	Scopes      []string // what clients of /mcp ask the provider for
	ClientID    string
	RedirectURI string // "" means <base URL>/v1/auth/callback

	// Recheck is for how long a login counts before the provider is asked again; 0 means that it is not.
	Recheck time.Duration
}

// Join is a workspace that users join: everybody at their first login, or the people of a group for as long as they are
// in it.
type Join struct {
	Group     string // "" for everybody
	Workspace string
	Role      core.Role
}

// MCP holds the limits of /mcp.
type MCP struct {
	MaxSessions  int
	MaxInstances int // processes that apps may have beside their shared ones, of all workspaces
	SessionTTL   time.Duration
	Replica      string // begins the ids of this server's sessions; "" for a server on its own
}

// Storage is where the server keeps what must outlive it.
type Storage struct {
	URL  core.Secret // of a PostgreSQL database; "" means the file ropewalk.db in the home
	Keys StorageKeys
	// UsageRetention is for how long the usage of model calls is kept; 0 means for ever.
	UsageRetention time.Duration
	// ApprovalRetention is for how long approvals are kept after they expired.
	ApprovalRetention time.Duration
	// EventRetention is for how long the recent events are kept in memory; 0 means until newer ones replace them.
	EventRetention time.Duration
	// StaleMembership is for how long memberships count as they were last read while the database cannot
	// be read; 0 means not at all.
	StaleMembership time.Duration
}

// StorageKeys is where the keys that encrypt the secrets of the state come from. At most one is set.
type StorageKeys struct {
	Text    core.Secret // the keys themselves
	File    string      // absolute
	Command []string    // prints them
}

// Set reports whether the state is encrypted.
func (k StorageKeys) Set() bool { return k.Text != "" || k.File != "" || len(k.Command) > 0 }

// Chat is how people talk to a model.
type Chat struct {
	ElicitationTimeout time.Duration // for what an app asks a person, until it counts as declined
}

// Limits are the shares of one user. 0 means no limit.
type Limits struct {
	Connections           int `json:"connections"` // in total; 0 derives it from the limit on file descriptors
	ConnectionsPerAddress int `json:"connectionsPerAddress"`
	Sessions              int `json:"sessions"`
	Streams               int `json:"streams"`
	ChatRuns              int `json:"chatRuns"`
	Calls                 int `json:"calls"`
	CallsPerSecond        int `json:"callsPerSecond"`
	TokensPerDay          int `json:"tokensPerDay"`
	APIKeys               int `json:"apiKeys"`
	Conversations         int `json:"conversations"`
	StoredMiB             int `json:"storedMiB"`
	APIBodyBytes          int `json:"apiBodyBytes"`
	MCPBodyBytes          int `json:"mcpBodyBytes"`
	AnswerBytes           int `json:"answerBytes"` // of one message of an app
}

// Log is how much is logged, and in which form.
type Log struct {
	Level  string `json:"level" reload:"applied"`  // trace, debug, info, warn or error
	Format string `json:"format" reload:"restart"` // text or json
	Access bool   `json:"access" reload:"applied"` // whether each request is logged
}

// Plugins holds what is the same for every plugin process.
type Plugins struct {
	StartTimeout time.Duration
	CallTimeout  time.Duration
	PassEnv      []string // names of environment variables that plugin processes get

	TrustedKeys      []string // minisign public keys whose signatures count
	RequireSignature bool     // plugins in the home must be signed by one of them
	Registries       []string // absolute paths and URLs of lists of plugins to install by name

	Limits PluginLimits
}

// PluginLimits bound what each plugin may use, with all processes that it starts. 0 is no limit.
type PluginLimits struct {
	Memory    int64 // private bytes
	OpenFiles int   // descriptors
	Processes int
	LogLines  int // that are logged each second; more are dropped
}

// App is an app that the configuration declares: it is installed at the start when it is not yet.
// Without a source it declares nothing, and Protected holds for an app of that name, whoever
// installs it.
type App struct {
	Source  core.Source // Kind and Ref; zero for none; a path is absolute, relative ones count from the file's folder
	Version string      // of SourceName; "" means the latest
	Env     map[string]core.Secret
	Remote  *core.Remote // of SourceURL
	// InstallScripts lets npm run the install scripts of packages.
	InstallScripts bool
	Protected      bool           // uninstalling it is refused with 403 protected
	Sandbox        *Sandbox       // nil for Config.Sandbox
	StartTimeout   time.Duration  // 0 for what the app's record says
	Idle           *time.Duration // nil for Config.Idle
}

// The names of the feature flags.
const (
	FlagMCPServer           = "mcpServer"
	FlagBundleManagement    = "bundleManagement"
	FlagBundleDiscovery     = "bundleDiscovery"
	FlagToolDiscovery       = "toolDiscovery"
	FlagSkillManagement     = "skillManagement"
	FlagDelegation          = "delegation"
	FlagUserManagement      = "userManagement"
	FlagWorkspaceManagement = "workspaceManagement"
	FlagFileContext         = "fileContext"
)

// Features are the feature flags by name. All are on by default, so one that is not in the map is
// on, and the nil map is everything on.
type Features map[string]bool

// Enabled reports whether a flag is on.
func (f Features) Enabled(flag string) bool {
	on, set := f[flag]
	return on || !set
}

// View is a view that the configuration declares.
type View struct {
	core.View
	Workspaces []string    // that have it; empty for all
	Roles      []core.Role // in the workspace, that are bound to it
}

// Tools says which tools of apps may be used without a person who looks at them.
type Tools struct {
	Pin            trust.PinMode
	Approve        []string // names of tools, in which * matches any text, or destructiveHint
	ApprovalWait   time.Duration
	ApprovalExpiry time.Duration

	Surface    string   // how MCP clients that do not choose see the tools
	Budget     int      // tokens of a list up to which all tools are listed also for a search; 0 for none
	Favourites []string // tools that are listed as well for a search, as Approve
}

type toolsSection struct {
	Pin                   string   `json:"pin"`
	Approve               []string `json:"approve"`
	ApprovalWaitSeconds   int      `json:"approvalWaitSeconds"`
	ApprovalExpirySeconds int      `json:"approvalExpirySeconds"`
	Surface               string   `json:"surface"`
	Budget                int      `json:"budget"`
	Favourites            []string `json:"favourites"`
}

func (s toolsSection) tools() Tools {
	return Tools{
		Pin: trust.PinMode(s.Pin), Approve: s.Approve,
		ApprovalWait: seconds(s.ApprovalWaitSeconds), ApprovalExpiry: seconds(s.ApprovalExpirySeconds),
		Surface: s.Surface, Budget: s.Budget, Favourites: s.Favourites,
	}
}

// deriveLimits sets the limits whose default follows from other settings.
func (c *Config) deriveLimits() {
	if _, set := c.places["limits.sessions"]; !set {
		c.Limits.Sessions = max(c.Limits.Sessions, c.MCP.MaxSessions/2)
	}
	c.relaxInDevMode()
}

// deriveIdle lets apps sleep where a number of them must, and nothing says when.
func (c *Config) deriveIdle() {
	if _, set := c.places["idle"]; !set && c.MaxAwake > 0 {
		c.Idle = 10 * time.Minute
	}
}

// relaxInDevMode turns the limits that were not set off in dev mode, where one person uses the server
// alone and tries things out. The sizes of bodies and answers stay.
func (c *Config) relaxInDevMode() {
	if !c.Dev() {
		return
	}
	l := &c.Limits
	for name, value := range map[string]*int{
		"connectionsPerAddress": &l.ConnectionsPerAddress, "sessions": &l.Sessions, "streams": &l.Streams, "chatRuns": &l.ChatRuns,
		"calls": &l.Calls, "callsPerSecond": &l.CallsPerSecond, "tokensPerDay": &l.TokensPerDay,
		"apiKeys": &l.APIKeys, "conversations": &l.Conversations, "storedMiB": &l.StoredMiB,
	} {
		if _, set := c.places["limits."+name]; !set {
			*value = 0
		}
	}
}
