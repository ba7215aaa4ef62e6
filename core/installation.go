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
	ID          string // random; an app that is installed again under the same name has another one
	Workspace   string
	Name        string // short server name
	Source      Source
	BundleName  string
	Version     string
	TrustScore  int
	Manifest    json.RawMessage   // the bundle's manifest.json; nil for remote apps
	Dir         string            // where the bundle's files are; "" for remote apps
	Files       string            // their reference in the store, for peer servers; "" when the store does not keep them
	Sum         string            // of its files as they were installed, which each start checks; "" when they are not checked
	Signature   *BundleSignature  // of the bundle file; nil when it has none
	Env         map[string]Secret // as given at installation
	Remote      *Remote           // nil unless the app is a remote server
	Running     bool              // false after a requested stop
	Patience    time.Duration     // how long it may take to start; 0 for the usual time
	Permissions []Permission      // nil in records of versions that did not record them
	InstalledAt time.Time
}

// PublicName is BundleName as every member of the workspace may read it: @<scope>/<bundle>, or the address of a remote
// app.
func (i Installation) PublicName() string {
	if i.Remote == nil {
		return ScopedName(i.BundleName)
	}
	return publicURL(i.BundleName)
}

// ScopedName is the name of a bundle in the form @<scope>/<bundle>. One without a scope gets the scope local; names of the
// MCP registry have another form of their own, io.example/bundle.
func ScopedName(bundle string) string {
	if bundle == "" || strings.Contains(bundle, "/") {
		return bundle
	}
	return "@local/" + bundle
}

// PublicRef is Ref as every member of the workspace may read it.
func (s Source) PublicRef() string {
	if s.Kind != SourceURL {
		return s.Ref
	}
	return publicURL(s.Ref)
}

// publicURL is an address without what may be a key: user, query and fragment. It is "" for an invalid one.
func publicURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// BundleSignature is the signature of a bundle file, which was valid when the app was installed.
type BundleSignature struct {
	Signer      string `json:"signer"`      // the name in the certificate
	Fingerprint string `json:"fingerprint"` // the SHA-256 of the certificate, in lower-case hex
	Trusted     bool   `json:"trusted"`     // by install.trustedSigners
}

// Source says where an app came from.
type Source struct {
	Kind     SourceKind
	Ref      string // the path, name, package (PyPI: with extras), URL or command; the SHA-256 of an upload
	Registry string // which configured registry answered, for SourceName
	Bin      string `json:",omitempty"` // which command of a package runs; "" for its only one, or the one with its name
}

// SourceKind is the kind of a source.
type SourceKind string

// AlreadyInstalled is the error about an app whose name another one has.
func AlreadyInstalled(name string) *Error {
	return Errorf(CodeAlreadyInstalled, "an app named %s is installed already: update or uninstall it, or install this one under another serverName (--as)", name)
}

// The kinds of sources.
const (
	SourcePath    SourceKind = "path"    // a bundle directory or an .mcpb file on the server
	SourceName    SourceKind = "name"    // a bundle of a registry
	SourceURL     SourceKind = "url"     // a remote MCP server
	SourceNPM     SourceKind = "npm"     // an npm package
	SourcePyPI    SourceKind = "pypi"    // a PyPI project
	SourceCommand SourceKind = "command" // a program that is installed on the server
	SourceUpload  SourceKind = "upload"  // an .mcpb file that was sent to the server
)

// Remote describes the connection to a remote MCP server.
type Remote struct {
	URL     string
	Type    string // "streamable-http" or "sse"
	Auth    RemoteAuth
	Headers map[string]Secret

	// AllowPrivate permits loopback and private addresses: whoever installed the app may access the
	// server's own network (Caller.MayReachPrivate).
	AllowPrivate bool
}

// RemoteAuth is the authentication at a remote server. Type is "bearer", "header", "none", AuthUser or AuthShared.
type RemoteAuth struct {
	Type  string
	Token Secret // bearer
	Name  string // header
	Value Secret // header

	// The client that the authorization server knows this server as, and the scopes to ask for. Without them accounts are
	// linked with what discovery finds.
	ClientID     string
	ClientSecret Secret
	Scopes       string // separated by spaces
}
