package registry

import (
	"context"
	"io"
)

// Registry finds bundles by name. It must be safe for concurrent use.
// Rules for every method:
//   - The context's deadline is honored.
//   - plugins.ErrNotFound means that the registry was searched and has no such bundle or version; the
//     server tries its next registry. plugins.ErrUnavailable means that the registry could not be
//     reached; the server reports it.
//   - A version is immutable: the same name and version always resolve to the same bytes.
type Registry interface {
	// Search returns the bundles that match q.Text, best first. An empty Text lists all bundles. Pass the NextCursor
	// of a page as Query.Cursor to get the next page. A search without results returns an empty page. A limit below 0
	// or above 100 is plugins.ErrInvalid.
	Search(ctx context.Context, q Query) (Page, error)

	// Resolve returns the package of a bundle for one platform. An empty version means the latest; the
	// version of the package is exact, never a range. A bundle that is not for that platform, or that no
	// server can install, is plugins.ErrNotFound too, with a message that gives the reason. An empty
	// name is plugins.ErrInvalid.
	Resolve(ctx context.Context, ref Ref) (Package, error)

	// Fetch returns the bytes of a package of kind KindMCPB; for another kind it returns plugins.ErrInvalid. The
	// context also bounds reading. The reader returns io.EOF only after the last byte; the caller closes it, and checks
	// size and sha256. Validate pkg.Artifact: for one that Resolve never returned, Fetch fails and reads no file and no
	// address.
	Fetch(ctx context.Context, pkg Package) (io.ReadCloser, error)
}

// Query is one search.
type Query struct {
	Text   string
	Limit  int // 1-100; 0 means 20
	Cursor string
}

// Page is one page of a search.
type Page struct {
	Entries    []Entry
	NextCursor string // "" on the last page
}

// Entry is one bundle that a search found.
type Entry struct {
	Name        string
	Title       string
	Description string
	Version     string // the latest version
	TrustScore  int    // 0-100; 0 if the registry has none
}

// Ref names a bundle for a platform.
type Ref struct {
	Name    string
	Version string // "" means the latest
	OS      string // a value of runtime.GOOS
	Arch    string // a value of runtime.GOARCH
}

// Kind says how a package is installed.
type Kind string

// The kinds of packages.
const (
	KindMCPB   Kind = "mcpb"   // a bundle file, to Fetch
	KindNPM    Kind = "npm"    // an npm package with an exact version
	KindPyPI   Kind = "pypi"   // a PyPI package with an exact version
	KindRemote Kind = "remote" // a remote MCP server; nothing to install
)

// Package is one version of a bundle for one platform, and how it is installed.
type Package struct {
	Name        string
	Version     string // exact
	Title       string
	Description string
	TrustScore  int // 0-100
	Kind        Kind

	// For KindMCPB.
	Artifact string // opaque to the server; Fetch understands it
	SHA256   string // lower-case hex; "" only if the registry does not know it
	Size     int64  // bytes; 0 if unknown

	// For KindNPM and KindPyPI.
	Identifier        string   // the package's name in its own registry
	IdentifierVersion string   // its exact version there, which may differ from Version
	RuntimeArgs       []string // arguments before the package itself; {name} as in Args
	Args              []string // {name} stands for a variable; without a value, the whole argument is left out

	// For KindRemote.
	Remote Remote

	// Variables are the values that the package needs. A variable whose {name} is in the arguments, the
	// URL or a header is put there (see Places and Fill); every other one is an environment variable.
	Variables []Variable
}

// Remote is a remote MCP server. {name} in URL and header values stands for a variable.
type Remote struct {
	Transport string // "streamable-http" or "sse"
	URL       string
	Headers   map[string]string
}

// Variable is a value that the operator supplies.
type Variable struct {
	Name        string
	Title       string
	Description string
	Default     string
	Choices     []string
	Required    bool
	Secret      bool
}
