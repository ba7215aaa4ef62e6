package core

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"
)

// Installation is the stored record of an installed app: everything needed to start it again.
// Workspace and Name together are the key.
type Installation struct {
	ID          string // random; an app that is reinstalled under the same name gets a new one
	Workspace   string
	Name        string // short server name
	Source      Source
	BundleName  string
	Version     string
	TrustScore  int
	Manifest    json.RawMessage   // the bundle's manifest.json; nil for remote apps
	Dir         string            // the directory of the bundle's files; "" for remote apps
	Files       string            // reference to the files in the store, for peer servers; "" if the store does not contain them
	Sum         string            // checksum of the files as installed, checked at each start; "" if they are not checked
	Signature   *BundleSignature  // the signature of the bundle file; nil if it is not signed
	Env         map[string]Secret // environment variables given at installation
	Remote      *Remote           // nil unless the app is a remote server
	Running     bool              // false after somebody stopped it
	Patience    time.Duration     // how long it may take to start; 0 for the default
	Tools       *ToolFilter       // limits the tools that the app has here; nil for all
	Permissions []Permission      // nil in records from older versions, which did not record them
	InstalledAt time.Time
	UndoUntil   time.Time // when an uninstalled app can no longer be restored; zero while it is installed
}

// PublicName returns BundleName in the form that every member of the workspace may see: @<scope>/<bundle>, or the
// address of a remote app.
func (i Installation) PublicName() string {
	if i.Remote == nil {
		return ScopedName(i.BundleName)
	}
	return publicURL(i.BundleName)
}

// ScopedName returns the name of a bundle in the form @<scope>/<bundle>. A name without a scope gets the scope "local".
// Names from the MCP registry have their own form, io.example/bundle, and are returned unchanged.
func ScopedName(bundle string) string {
	if bundle == "" || strings.Contains(bundle, "/") {
		return bundle
	}
	return "@local/" + bundle
}

// PublicRef returns Ref in the form that every member of the workspace may see.
func (s Source) PublicRef() string {
	if s.Kind != SourceURL {
		return s.Ref
	}
	return publicURL(s.Ref)
}

// publicURL returns an address without the parts that may contain a key: user, query and fragment. It returns "" for
// an invalid address.
func publicURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// BundleSignature describes the signature of a bundle file. It was valid when the app was installed.
type BundleSignature struct {
	Signer      string `json:"signer"`      // the name in the signer's certificate
	Fingerprint string `json:"fingerprint"` // the SHA-256 of the certificate, in lower-case hex
	Trusted     bool   `json:"trusted"`     // according to install.trustedSigners
}

// Source describes where an app came from.
type Source struct {
	Kind     SourceKind
	Ref      string // the path, name, package (PyPI: with extras), URL or command; the SHA-256 of an upload
	Registry string // for SourceName: the configured registry that had the bundle
	Bin      string `json:",omitempty"` // the command of the package to run; "" for the one with the package's name, or else its only command
}

// SourceKind is the kind of a source.
type SourceKind string

// AlreadyInstalled returns the error for an app name that is already in use.
func AlreadyInstalled(name string) *Error {
	return Errorf(CodeAlreadyInstalled, "an app named %q is already installed; update or uninstall it, or install this one under another serverName (--as)", name)
}

// The kinds of sources.
const (
	SourcePath    SourceKind = "path"    // a bundle directory or an .mcpb file on the server
	SourceName    SourceKind = "name"    // a bundle from a registry
	SourceURL     SourceKind = "url"     // a remote MCP server
	SourceNPM     SourceKind = "npm"     // an npm package
	SourcePyPI    SourceKind = "pypi"    // a PyPI project
	SourceCommand SourceKind = "command" // a program installed on the server
	SourceUpload  SourceKind = "upload"  // an .mcpb file uploaded to the server
)

// Remote describes the connection to a remote MCP server.
type Remote struct {
	URL     string
	Type    string // "streamable-http" or "sse"
	Auth    RemoteAuth
	Headers map[string]Secret

	// AllowPrivate permits loopback and private addresses, because whoever installed the app may access the
	// server's own network (Caller.MayReachPrivate).
	AllowPrivate bool
}

// RemoteAuth specifies how the server authenticates to a remote app. Type is "bearer", "header", "none", AuthUser, AuthShared
// or AuthExchange.
type RemoteAuth struct {
	Type  string
	Token Secret // bearer
	Name  string // header
	Value Secret // header

	// ClientID and ClientSecret identify the OAuth client that this server is registered as with the authorization server, and
	// Scopes are the scopes to request. If they are empty, the client and the scopes come from discovery.
	ClientID     string
	ClientSecret Secret
	Issuer       string // the authorization server of ClientID; "" for the one used for the first login
	Scopes       string // separated by spaces

	// TokenURL and Audience are for AuthExchange. Only the configuration sets them, because callers' tokens are sent there.
	TokenURL string
	Audience string
}
