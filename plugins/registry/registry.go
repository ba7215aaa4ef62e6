package registry

import (
	"context"
	"io"
)

// Registry finds bundles by name. It must be safe for concurrent use.
//
// What must hold, for every method:
//   - The context's deadline is honoured.
//   - plugins.ErrNotFound only after the registry really was asked and has no such bundle or
//     version; plugins.ErrUnavailable when it could not be asked. The server goes on to its next
//     registry after the first and reports the second.
//   - What a Resolve named is immutable: the same name and version resolve to the same bytes.
type Registry interface {
	// Search returns bundles that fit a text, best first. An empty text lists everything. The
	// next page is asked for with the cursor that came with the last one; "" means it was the last.
	// A limit below 0 or above 100 is plugins.ErrInvalid. Nothing found is an empty page.
	Search(ctx context.Context, q Query) (Page, error)

	// Resolve returns how to get one bundle for one platform. An empty version means the latest;
	// the answer always names an exact one, never a range. A bundle that exists, but not for that
	// platform or in no form that a server can install, is plugins.ErrNotFound too, and the message
	// says so. An empty name is plugins.ErrInvalid.
	Resolve(ctx context.Context, ref Ref) (Package, error)

	// Fetch returns the bytes of a package of kind KindMCPB. The context bounds the reading too. The
	// caller closes the reader and checks size and sha256 itself; io.EOF only after the last byte.
	// plugins.ErrInvalid for packages of another kind. An Artifact is not trusted for having come
	// back: one that Resolve never gave is an error, and never a look at anything else.
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
	NextCursor string
}

// Entry is one bundle that a search found.
type Entry struct {
	Name        string
	Title       string
	Description string
	Version     string // the latest one
	TrustScore  int    // 0-100, 0 when the registry says nothing
}

// Ref names a bundle for a platform.
type Ref struct {
	Name    string
	Version string // "" means the latest
	OS      string // as runtime.GOOS
	Arch    string // as runtime.GOARCH
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

// Package is how to get one bundle.
type Package struct {
	Name        string
	Version     string // exact
	Title       string
	Description string
	TrustScore  int // 0-100
	Kind        Kind

	// Of KindMCPB.
	Artifact string // opaque to the server; Fetch understands it
	SHA256   string // lower-case hex; "" only where the registry knows none
	Size     int64  // bytes; 0 when unknown

	// Of KindNPM and KindPyPI.
	Identifier        string   // the package's name in its own registry
	IdentifierVersion string   // its exact version there, which may differ from Version
	RuntimeArgs       []string // before the package itself; {name} as in Args
	Args              []string // {name} stands for a variable; one without a value takes its argument with it

	// Of KindRemote.
	Remote Remote

	// Variables are the values that the package takes. One with a {name} in the arguments, the URL
	// or a header goes there (see Places and Fill); every other is an environment variable.
	Variables []Variable
}

// Remote is a remote MCP server. {name} in URL and header values stands for a variable.
type Remote struct {
	Transport string // "streamable-http" or "sse"
	URL       string
	Headers   map[string]string
}

// Variable is one value that the operator may or must supply.
type Variable struct {
	Name        string
	Title       string
	Description string
	Default     string
	Choices     []string
	Required    bool
	Secret      bool
}
