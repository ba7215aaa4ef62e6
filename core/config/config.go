package config

import (
	"net/netip"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config/layer"
)

// Config is everything an operator can decide. It is frozen: Load makes it, nobody changes it,
// and a reload makes another one. Every default is filled in and every value has been checked.
type Config struct {
	Home string // the service home, absolute
	File string // the configuration file, absolute; "" when there is none

	HTTP           HTTP
	APIKey         core.Secret // SERVICE_API_KEY; "" means there is none
	AllowedOrigins []string    // scheme://host[:port], lower case; empty means same-origin only
	Auth           []Auth      // in the order in which tokens without a known issuer are tried; empty means none
	SessionStore   Plugin
	Storage        Storage
	Registries     []Registry // in the order they are asked
	Features       Features
	Apps           map[string]App // apps to have installed, by server name
	MCP            MCP
	Chat           Chat
	Models         Models
	Skills         Skills
	Log            Log
	Audit          Audit
	Tools          Tools
	Install        Install
	Limits         Limits
	Sandbox        Sandbox // of an app whose own section says nothing else
	Plugins        Plugins

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
	ShutdownDelay  time.Duration  // of the listener, while /readyz fails
	TrustedProxies []netip.Prefix // whose X-Forwarded-* headers count
	AllowedHosts   []string       // extra Host header values to accept, host or host:port, lower case
	BaseURL        string         // the public address without a trailing slash; "" when not set
	Console        bool           // whether the console is served at /
	Metrics        string         // host:port of a separate listener for the metrics; "" for none
	ViewOrigin     string         // another origin of this server, for views of apps; "" when not set
}

// Plugin says which adapter fills a place, and carries its settings.
type Plugin struct {
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
	Name        string   // what the operator calls it, by default the adapter's name; unique
	Audiences   []string // accepted beside the addresses of /mcp
	AnyAudience bool     // audience: any turns the check off
	Admins      []string // emails, in lower case, and subjects of admins of the organization
	Join        Join
	Scopes      []string // what clients of /mcp ask the provider for
	ClientID    string
	RedirectURI string // "" means <base URL>/v1/auth/callback

	// Recheck is for how long a login counts before the provider is asked again; 0 means that it is not.
	Recheck time.Duration
}

// Join is the workspace that users join at their first login. Workspace is "" for none.
type Join struct {
	Workspace string
	Role      core.Role
}

// Registry is one bundle registry.
type Registry struct {
	Plugin
	Name string // what the operator calls it; unique
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
	APIBodyBytes          int `json:"apiBodyBytes"`
	MCPBodyBytes          int `json:"mcpBodyBytes"`
	AnswerBytes           int `json:"answerBytes"` // of one message of an app
}

// Log is how much is logged, and in which form.
type Log struct {
	Level  string // trace, debug, info, warn or error
	Format string // text or json
	Access bool   // whether each request is logged
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
