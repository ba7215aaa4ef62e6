package source

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"

	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// packageCandidate describes an app that is a package from another ecosystem (npm, PyPI). Its manifest is complete only
// after install has run; before that, it only lists the values that are needed.
func packageCandidate(o Order, pkg registry.Package, kind bundle.ServerType, command string, install func(context.Context, *Candidate, string) error) (*Candidate, error) {
	if err := checkVariables(pkg, o.Env); err != nil {
		return nil, err
	}
	m, err := packageManifest(pkg, kind, bundle.CommandPart{Command: command, Dir: o.Dir}, nil)
	if err != nil {
		return nil, fmt.Errorf("the registry's entry for %s cannot be used: %w", pkg.Name, err)
	}
	sum := sha256.Sum256([]byte(string(pkg.Kind) + "\x00" + pkg.Identifier + "\x00" + packageVersion(pkg)))
	c := &Candidate{Manifest: m, Label: hex.EncodeToString(sum[:])[:labelLength]}
	c.place = func(ctx context.Context, c *Candidate, dir string) error {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		return install(ctx, c, dir)
	}
	return c, c.describe(o)
}

// packageVersion returns the version of a package in its own ecosystem.
func packageVersion(pkg registry.Package) string { return cmp.Or(pkg.IdentifierVersion, pkg.Version) }

// writeManifest sets the complete manifest of a package once it is installed. runtimes holds the versions of runtimes
// that the package needs.
func (c *Candidate) writeManifest(pkg registry.Package, kind bundle.ServerType, command string, args []string, runtimes map[string]string) error {
	m, err := packageManifest(pkg, kind, bundle.CommandPart{Command: command, Args: args, Dir: c.Manifest.Server.MCPConfig.Dir}, runtimes)
	if err != nil {
		return err
	}
	c.Manifest, c.Record.Manifest = m, m.Raw
	return nil
}
