package core

import (
	"encoding/json"
	"time"
)

// Installation is what is kept of an installed app: everything that is needed to start it again.
// Workspace and Name together are the key.
type Installation struct {
	ID          string // random; who is installed again under the same name has another
	Workspace   string
	Name        string // short server name
	Source      Source
	BundleName  string
	Version     string
	TrustScore  int
	Manifest    json.RawMessage   // the bundle's manifest.json; nil for remote apps
	Dir         string            // where the bundle's files are; "" for remote apps
	Files       string            // what they are, as the store keeps them for other servers; "" when it does not
	Env         map[string]Secret // as given at installation
	Remote      *Remote           // nil unless the app is a remote server
	Running     bool              // false after a stop that was asked for
	InstalledAt time.Time
}

// Source says where an app came from.
type Source struct {
	Kind     SourceKind
	Ref      string // the path, the registry name or the URL
	Registry string // which configured registry answered, for SourceName
}

// SourceKind is one of the three sources of spec 4.2.
type SourceKind string

// The three sources of spec 4.2.
const (
	SourcePath SourceKind = "path"
	SourceName SourceKind = "name"
	SourceURL  SourceKind = "url"
)

// Remote is how to reach a remote MCP server (spec part 2, install transport object).
type Remote struct {
	URL     string
	Type    string // "streamable-http" or "sse"
	Auth    RemoteAuth
	Headers map[string]Secret

	// AllowPrivate lets the URL lead to loopback and private addresses: who installed the app may
	// reach into the server's own network (Caller.MayReachPrivate).
	AllowPrivate bool
}

// RemoteAuth is what a remote server wants to see. Type is "bearer", "header" or "none".
type RemoteAuth struct {
	Type  string
	Token Secret // bearer
	Name  string // header
	Value Secret // header
}
