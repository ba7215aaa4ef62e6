package config

import (
	"net/netip"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config/layer"
	"github.com/ropewalk/ropewalk/core/trust"
)

// Config is everything an operator can configure. It is immutable: Load creates it, nothing changes it, and a
// reload creates another one. Every default is filled in and every value has been checked.
//
// The tags name the section of the file, and say whether a reload applies a change to it or only a restart does
// (Reload). If a section has both kinds of settings, the fields of its type have tags as well.
type Config struct {
	Home string `section:"home" reload:"restart"` // the server's home, absolute
	File string // the configuration file, absolute; "" if there is none

	HTTP           HTTP           `section:"http" reload:"restart"`
	APIKey         core.Secret    `section:"apiKey" reload:"restart"` // SERVICE_API_KEY; "" if not set
	AllowedOrigins []string       `section:"http" reload:"restart"`   // scheme://host[:port], lower case; empty means same-origin only
	Auth           []Auth         `section:"auth" reload:"applied"`   // in the order in which tokens without a known issuer are tried; may be empty
	SessionStore   Plugin         `section:"sessionStore" reload:"applied"`
	Storage        Storage        `section:"storage" reload:"restart"`
	Registries     []Plugin       `section:"registries" reload:"applied"` // in the order they are asked
	Features       Features       `section:"features" reload:"applied"`
	Apps           map[string]App `section:"apps" reload:"applied"` // apps to have installed, by server name
	MaxAwake       int            `section:"apps" reload:"applied"` // beyond this number, idle apps are put to sleep; 0 for no limit
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
	Sandbox        Sandbox        `section:"sandbox" reload:"restart"` // for apps whose own section does not set it
	Idle           time.Duration  `section:"idle" reload:"restart"`    // apps unused for this long are put to sleep unless their own section differs; 0 for never
	Plugins        Plugins        `section:"plugins" reload:"restart"`

	// Environment is the server's own environment, complete. Bundles and plugins get only what their
	// allow-lists name.
	Environment Environment

	// Warnings are sentences for the start-up log about settings that are allowed but unwise.
	Warnings []string

	places    layer.Places
	effective []Value
}

// Dev reports whether the server runs without authentication: neither an API key nor an auth adapter is set.
// Load ensures that such a server listens on loopback only.
func (c *Config) Dev() bool { return c.APIKey == "" && len(c.Auth) == 0 }

// HTTP configures where the server listens and which proxies and hosts it trusts.
type HTTP struct {
	Host           string         // name or address to listen on
	Port           int            // 0 picks a free one
	TLS            TLS            // of the listener; without it, the listener speaks plain HTTP
	ShutdownDelay  time.Duration  // how long the listener stays open while /readyz fails
	TrustedProxies []netip.Prefix // whose X-Forwarded-* headers count
	AllowedHosts   []string       // extra Host header values to accept, host or host:port, lower case
	BaseURL        string         // the public address without a trailing slash; "" when not set
	Console        bool           // whether to serve the console at /
	Metrics        string         // host:port of a separate listener for the metrics; "" for none
	ViewOrigin     string         // a second origin of this server, for views of apps; "" if not set
}

// TLS names the listener's certificate and key, both PEM files with absolute paths. They are read again when
// they change. Both are "" for none.
type TLS struct{ CertFile, KeyFile string }

// Plugin says which adapter to use, and holds its settings.
type Plugin struct {
	Name     string   // the operator's name for it, by default the adapter's name; unique within its kind
	Adapter  string   // a built-in of this name, otherwise <home>/plugins/<kind>-<adapter>
	Path     string   // the plugin's executable, absolute; if set, SHA256 is set too
	SHA256   string   // lower-case hex
	Settings Settings // every key of the section that is not the server's
	At       string   // the section's path, such as "registries[1]", for Config.Problem
}

// Auth is one auth adapter. ClientID and RedirectURI are also in Settings, because the adapter needs them as
// well.
type Auth struct {
	Plugin
	Audiences   []string // accepted in addition to the addresses of /mcp
	AnyAudience bool     // audience: any disables the check
	Admins      []string // of the organization: email:ADDRESS, group:NAME, subject:NAME, or without a type (access.Enrollment)
	Join        []Join
	SameAs      []string // issuers that identify the same people by the same verified email
	Scopes      []string // what clients of /mcp request from the provider
	ClientID    string
	RedirectURI string // "" means <base URL>/v1/auth/callback

	// Recheck is how long a login is trusted before the provider is asked again; 0 means never to ask again.
	Recheck time.Duration
}

// Join is a workspace that users join: everyone at their first login, or the members of a group for as long as
// they are in it.
type Join struct {
	Group     string // "" for everyone
	Workspace string
	Role      core.Role
}

// MCP configures the limits of /mcp.
type MCP struct {
	MaxSessions  int
	MaxInstances int // processes that apps may have in addition to their shared ones, over all workspaces
	SessionTTL   time.Duration
	Replica      string // prefix of this server's session ids; "" for a single server
}

// Storage configures where the server keeps its persistent state.
type Storage struct {
	URL  core.Secret // of a PostgreSQL database; "" means the file ropewalk.db in the home
	Keys StorageKeys
	// UsageRetention is how long the usage of model calls is kept; 0 means forever.
	UsageRetention time.Duration
	// ApprovalRetention is how long approvals are kept after they expire.
	ApprovalRetention time.Duration
	// EventRetention is how long recent events are kept in memory; 0 means until newer ones replace them.
	EventRetention time.Duration
	// StaleMembership is how long the memberships read last stay valid while the database cannot be read; 0
	// means not at all.
	StaleMembership time.Duration
}

// StorageKeys says where the keys that encrypt the secrets in the state come from. At most one is set.
type StorageKeys struct {
	Text    core.Secret // the keys themselves
	File    string      // absolute
	Command []string    // prints them
}

// Set reports whether the state is encrypted.
func (k StorageKeys) Set() bool { return k.Text != "" || k.File != "" || len(k.Command) > 0 }

// Chat configures how people talk to a model.
type Chat struct {
	ElicitationTimeout time.Duration // how long an app's question to a person stays open until it counts as declined
}

// Limits are limits per user. 0 means no limit.
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
	PersonalApps          int `json:"personalApps"`
	Conversations         int `json:"conversations"`
	StoredMiB             int `json:"storedMiB"`
	APIBodyBytes          int `json:"apiBodyBytes"`
	MCPBodyBytes          int `json:"mcpBodyBytes"`
	AnswerBytes           int `json:"answerBytes"` // of one message from an app
}

// Log configures how much is logged, and in which format.
type Log struct {
	Level  string `json:"level" reload:"applied"`  // trace, debug, info, warn or error
	Format string `json:"format" reload:"restart"` // text or json
	Access bool   `json:"access" reload:"applied"` // whether each request is logged
}

// Plugins configures what is the same for every plugin process.
type Plugins struct {
	StartTimeout time.Duration
	CallTimeout  time.Duration
	PassEnv      []string // names of environment variables passed to plugin processes

	TrustedKeys      []string // minisign public keys whose signatures count
	RequireSignature bool     // plugins in the home must be signed by one of them
	Registries       []string // absolute paths and URLs of lists from which plugins are installed by name

	Limits PluginLimits
}

// PluginLimits limit what each plugin may use, including all processes that it starts. 0 means no limit.
type PluginLimits struct {
	Memory    int64 // private bytes
	OpenFiles int   // descriptors
	Processes int
	LogLines  int // logged per second; more are dropped
}

// App is an app declared in the configuration. It is installed at startup if it is not installed yet. Without a
// source it only applies Protected to an app of that name, whoever installs it.
type App struct {
	Source  core.Source // Kind and Ref; may be zero; a path is absolute, and relative ones start at the file's directory
	Version string      // of SourceName; "" means the latest
	Env     map[string]core.Secret
	Remote  *core.Remote // of SourceURL
	// InstallScripts lets npm run the install scripts of packages.
	InstallScripts bool
	Protected      bool           // uninstalling it is rejected with 403 protected
	Sandbox        *Sandbox       // nil for Config.Sandbox
	StartTimeout   time.Duration  // 0 for the value in the app's record
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

// Features are the feature flags by name. All are on by default, so a flag that is missing from the map, or
// from a nil map, is on.
type Features map[string]bool

// Enabled reports whether a flag is on.
func (f Features) Enabled(flag string) bool {
	on, set := f[flag]
	return on || !set
}

// View is a view declared in the configuration.
type View struct {
	core.View
	Workspaces []string // that have it; empty for all
}

// Tools configures which tools of apps may be used without a person checking.
type Tools struct {
	Pin            trust.PinMode
	Approve        []string // names of tools, in which * matches any text, or destructiveHint
	ApprovalWait   time.Duration
	ApprovalExpiry time.Duration

	Surface    string            // how MCP clients that do not choose see the tools
	Surfaces   map[string]string // the same by workspace, where it differs
	Budget     int               // size of a list, in tokens, up to which a search also lists all tools; 0 for none
	Favourites []string          // tools that a search always lists, with the same patterns as Approve

	ResultBudget int // tokens of a result's text above which a model gets an excerpt
}

type toolsSection struct {
	Pin                   string            `json:"pin"`
	Approve               []string          `json:"approve"`
	ApprovalWaitSeconds   int               `json:"approvalWaitSeconds"`
	ApprovalExpirySeconds int               `json:"approvalExpirySeconds"`
	Surface               string            `json:"surface"`
	Surfaces              map[string]string `json:"surfaces"`
	Budget                int               `json:"budget"`
	Favourites            []string          `json:"favourites"`
	ResultBudget          int               `json:"resultBudget"`
}

func (s toolsSection) tools() Tools {
	return Tools{
		Pin: trust.PinMode(s.Pin), Approve: s.Approve,
		ApprovalWait: seconds(s.ApprovalWaitSeconds), ApprovalExpiry: seconds(s.ApprovalExpirySeconds),
		Surface: s.Surface, Surfaces: s.Surfaces, Budget: s.Budget, Favourites: s.Favourites, ResultBudget: s.ResultBudget,
	}
}

// deriveLimits sets the limits whose defaults follow from other settings.
func (c *Config) deriveLimits() {
	if _, set := c.places["limits.sessions"]; !set {
		c.Limits.Sessions = max(c.Limits.Sessions, c.MCP.MaxSessions/2)
	}
	c.relaxInDevMode()
}

// relaxInDevMode disables the limits that were not set in dev mode, where one person uses the server to try
// things out. The size limits of bodies and answers still apply.
func (c *Config) relaxInDevMode() {
	if !c.Dev() {
		return
	}
	l := &c.Limits
	for name, value := range map[string]*int{
		"connectionsPerAddress": &l.ConnectionsPerAddress, "sessions": &l.Sessions, "streams": &l.Streams, "chatRuns": &l.ChatRuns,
		"calls": &l.Calls, "callsPerSecond": &l.CallsPerSecond, "tokensPerDay": &l.TokensPerDay,
		"apiKeys": &l.APIKeys, "personalApps": &l.PersonalApps, "conversations": &l.Conversations, "storedMiB": &l.StoredMiB,
	} {
		if _, set := c.places["limits."+name]; !set {
			*value = 0
		}
	}
}
