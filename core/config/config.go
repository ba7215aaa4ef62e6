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
// A field's tags name its section in the file, and say whether a reload applies a change to the section or only a
// restart does (Reload). If a section has both kinds of settings, the fields of its type have tags as well.
type Config struct {
	Home string `section:"home" reload:"restart"` // the server's home, absolute
	File string // the configuration file, absolute; "" if there is none

	HTTP           HTTP           `section:"http" reload:"restart"`
	APIKey         core.Secret    `section:"apiKey" reload:"restart"` // SERVICE_API_KEY; "" if not set
	AllowedOrigins []string       `section:"http" reload:"restart"`   // scheme://host[:port], lower case; empty means same-origin only
	Auth           []Auth         `section:"auth" reload:"applied"`   // a token without a known issuer is tried with each in this order; may be empty
	SessionStore   Plugin         `section:"sessionStore" reload:"applied"`
	Storage        Storage        `section:"storage" reload:"restart"`
	Registries     []Plugin       `section:"registries" reload:"applied"` // in the order in which they are queried
	Features       Features       `section:"features" reload:"applied"`
	Apps           map[string]App `section:"apps" reload:"applied"` // apps to install, by server name
	MaxAwake       int            `section:"apps" reload:"applied"` // if more apps than this are awake, idle ones are put to sleep; 0 for no limit
	MCP            MCP            `section:"mcp" reload:"restart"`
	Chat           Chat           `section:"chat" reload:"applied"`
	Models         Models         `section:"models" reload:"applied"`
	Skills         Skills         `section:"skills" reload:"restart"`
	Log            Log            `section:"log" reload:"restart"`
	Audit          Audit          `section:"audit" reload:"restart"`
	Tools          Tools          `section:"tools" reload:"restart"`
	Views          []View         `section:"views" reload:"applied"` // sorted by name
	Install        Install        `section:"install" reload:"applied"`
	Limits         Limits         `section:"limits" reload:"restart"`
	Sandbox        Sandbox        `section:"sandbox" reload:"restart"` // for apps whose own section does not set a sandbox
	Idle           time.Duration  `section:"idle" reload:"restart"`    // apps unused for this long are put to sleep, unless their own section says otherwise; 0 for never
	Plugins        Plugins        `section:"plugins" reload:"restart"`

	// Environment is the server's complete environment. Bundles and plugins get only the variables that their
	// allow-lists contain.
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
	TLS            TLS            // the listener's certificate; if there is none, the listener uses plain HTTP
	ShutdownDelay  time.Duration  // how long a server that is shutting down keeps listening, while its /readyz fails
	TrustedProxies []netip.Prefix // the proxies whose X-Forwarded-* headers are used
	AllowedHosts   []string       // extra Host header values to accept, host or host:port, lower case
	BaseURL        string         // the public address without a trailing slash; "" if not set
	Console        bool           // whether to serve the console at /
	Metrics        string         // host:port of a separate listener for the metrics; "" for none
	ViewOrigin     string         // a second origin of this server, for views of apps; "" if not set
}

// TLS names the listener's certificate and key, both PEM files with absolute paths. The files are read
// again when they change. Both paths are "" if the listener has no certificate.
type TLS struct{ CertFile, KeyFile string }

// Plugin selects an adapter, and contains its settings.
type Plugin struct {
	Name     string   // the operator's name for the plugin, by default the adapter's name; unique within its kind
	Adapter  string   // the built-in adapter with this name, or else <home>/plugins/<kind>-<adapter>
	Path     string   // absolute path of the plugin's executable; if it is set, so is SHA256
	SHA256   string   // the executable's hash, in lower-case hex
	Settings Settings // the adapter's settings: every key of the section that the server does not use itself
	At       string   // the section's path, such as "registries[1]", for Config.Problem
}

// Auth is one auth adapter. ClientID and RedirectURI are also in Settings, because the adapter needs them as
// well.
type Auth struct {
	Plugin
	Audiences   []string // audiences that are accepted in addition to the addresses of /mcp
	AnyAudience bool     // whether tokens for any audience are accepted (audience: any)
	Admins      []string // the organization's admins: email:ADDRESS, group:NAME, subject:NAME, or without a type (access.Enrollment)
	Join        []Join
	SameAs      []string // issuers whose users are the same people if they have the same verified email
	Scopes      []string // what clients of /mcp request from the provider
	ClientID    string
	RedirectURI string // "" means <base URL>/v1/auth/callback

	// Recheck is how long a login is trusted before it is checked with the provider again; 0 means that it never is.
	Recheck time.Duration
}

// Join is a workspace that users join: everyone on their first login, or the members of a group for as long as
// they are in it.
type Join struct {
	Group     string // "" for everyone
	Workspace string
	Role      core.Role
}

// MCP configures the limits of /mcp.
type MCP struct {
	MaxSessions  int
	MaxInstances int // how many processes the apps of all workspaces may have in addition to their shared ones
	SessionTTL   time.Duration
	Replica      string // prefix of this server's session ids; "" for a single server
}

// Storage configures where the server keeps its persistent state.
type Storage struct {
	URL  core.Secret // a PostgreSQL database; "" means the file ropewalk.db in the home
	Keys StorageKeys
	// UsageRetention is how long the usage of model calls is kept; 0 means forever.
	UsageRetention time.Duration
	// ApprovalRetention is how long approvals are kept after they expire.
	ApprovalRetention time.Duration
	// EventRetention is how long recent events are kept in memory; 0 means until newer ones replace them.
	EventRetention time.Duration
	// StaleMembership is how long memberships that were read earlier remain valid while the database cannot be read;
	// 0 means not at all.
	StaleMembership time.Duration
}

// StorageKeys specifies where the keys that encrypt the secrets in the state come from. At most one field is set.
type StorageKeys struct {
	Text    core.Secret // the keys themselves
	File    string      // absolute path of a file with the keys
	Command []string    // a program that prints the keys, and its arguments
}

// Set reports whether the state is encrypted.
func (k StorageKeys) Set() bool { return k.Text != "" || k.File != "" || len(k.Command) > 0 }

// Chat configures how people talk to a model.
type Chat struct {
	ElicitationTimeout time.Duration // how long an app's question to a person stays open before it is treated as declined
}

// Limits are limits per user, except where a field says otherwise. 0 means no limit.
type Limits struct {
	Connections           int `json:"connections"`           // of all users; 0 derives it from the limit on file descriptors
	ConnectionsPerAddress int `json:"connectionsPerAddress"` // from one network address
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
	AnswerBytes           int `json:"answerBytes"` // the size of one message from an app
}

// Log configures how much is logged, and in which format.
type Log struct {
	Level  string `json:"level" reload:"applied"`  // trace, debug, info, warn or error
	Format string `json:"format" reload:"restart"` // text or json
	Access bool   `json:"access" reload:"applied"` // whether each request is logged
}

// Plugins contains the settings that apply to every plugin process.
type Plugins struct {
	StartTimeout time.Duration
	CallTimeout  time.Duration
	PassEnv      []string // names of environment variables passed to plugin processes

	TrustedKeys      []string // minisign public keys whose signatures are accepted
	RequireSignature bool     // whether plugins in the home must be signed with one of TrustedKeys
	Registries       []string // lists from which plugins are installed by name: absolute paths and URLs

	Limits PluginLimits
}

// PluginLimits limit what each plugin and all processes that it starts may use together. 0 means no limit.
type PluginLimits struct {
	Memory    int64 // private bytes
	OpenFiles int   // file descriptors
	Processes int
	LogLines  int // lines logged per second; the rest are dropped
}

// App is an app declared in the configuration. It is installed at startup if it is not installed yet. An App without a
// source only applies its other settings to an app of that name, whoever installs it.
type App struct {
	Source  core.Source // Kind and Ref; may be zero; a path is absolute (in the file, it may be relative to the file's directory)
	Version string      // the version to install, if Source is a SourceName; "" means the latest
	Env     map[string]core.Secret
	Remote  *core.Remote // how to connect, if Source is a SourceURL
	// InstallScripts lets npm run the install scripts of packages.
	InstallScripts bool
	Protected      bool           // whether uninstalling the app is rejected with 403 protected
	Sandbox        *Sandbox       // nil for Config.Sandbox
	StartTimeout   time.Duration  // 0 for the value that the app was installed with
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
	Workspaces []string // the workspaces that have the view; empty for all
}

// Tools configures how tools are listed, and which of them may be used only after a person has approved the call.
type Tools struct {
	Pin            trust.PinMode
	Approve        []string // names of tools, in which * matches any text, or destructiveHint
	ApprovalWait   time.Duration
	ApprovalExpiry time.Duration

	CallTimeout time.Duration // how long an app may be silent during a call

	Surface    string            // the surface for MCP clients that do not choose one
	Surfaces   map[string]string // by workspace: the workspace's own Surface, if it differs
	Budget     int               // if the definitions of all tools have at most this many tokens, the search surface lists them all; 0 means never
	Favourites []string          // tools that the search surface always lists; patterns as in Approve

	ResultBudget int // if a result's text has more tokens than this, a model gets an excerpt
}

type toolsSection struct {
	Tools
	ApprovalWaitSeconds   int
	ApprovalExpirySeconds int
	CallTimeoutSeconds    int
}

func (s toolsSection) tools() Tools {
	s.ApprovalWait, s.ApprovalExpiry, s.CallTimeout = seconds(s.ApprovalWaitSeconds), seconds(s.ApprovalExpirySeconds), seconds(s.CallTimeoutSeconds)
	return s.Tools
}

// deriveLimits sets the limits whose defaults depend on other settings.
func (c *Config) deriveLimits() {
	if _, set := c.places["limits.sessions"]; !set {
		c.Limits.Sessions = max(c.Limits.Sessions, c.MCP.MaxSessions/2)
	}
	c.relaxInDevMode()
}

// relaxInDevMode disables, in dev mode, the limits that the configuration does not set, because one person is using the server
// to try things out. The limits on the sizes of bodies and answers still apply.
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
