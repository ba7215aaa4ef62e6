package source

import (
	"context"
	"errors"
	"os"
	"path"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/cleanup"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// labelLength is how many hex digits of a bundle's SHA-256 form the name of its directory.
const labelLength = 16

// Candidate is a bundle that has been found but not installed yet.
type Candidate struct {
	Record   core.Installation
	Manifest *bundle.Manifest // nil for remote apps
	Label    string           // the name of the bundle's directory; "" if the bundle is used in place

	Discover bool // see Order
	TrySSE   bool // the remote app may speak HTTP+SSE if it does not speak Streamable HTTP

	// Decide returns the new permissions of the app, given those of the installation that this one replaces. If it is
	// nil, the permissions do not change.
	Decide func(before []core.Permission) []core.Permission

	// SkippedScripts lists the npm packages whose install scripts were not run.
	SkippedScripts []string

	staged string // a temporary directory in IncomingDir that is always removed; "" for none
	appDir string // the app's directory
	isNew  bool   // whether this install created appDir

	// place puts the bundle's files into dir, which must not exist; it may complete the record's manifest. It is nil if
	// there are no files to place.
	place func(ctx context.Context, c *Candidate, dir string) error
}

// IsPlaced reports whether there is nothing to place: the bundle is used in place, or has no files.
func (c *Candidate) IsPlaced() bool { return c.place == nil }

// Place puts the bundle's files into dir, which must not exist. It must not be called if IsPlaced returns true.
func (c *Candidate) Place(ctx context.Context, dir string) error {
	c.Record.Dir = dir
	return c.place(ctx, c, dir)
}

// SetAppDir sets the app's directory. existed reports whether the directory existed before this install.
func (c *Candidate) SetAppDir(dir string, existed bool) { c.appDir, c.isNew = dir, !existed }

// CheckValues checks the values of the installation against what the bundle requires.
func (c *Candidate) CheckValues() error {
	if c.Manifest == nil {
		return bundle.CheckEnv(c.Record.Env)
	}
	if err := c.Manifest.CheckValues(c.Record.Env); err != nil {
		return err
	}
	if missing := c.Manifest.Missing(c.Record.Env); len(missing) > 0 {
		return bundle.CredentialsRequired(missing)
	}
	return nil
}

// Discard removes everything that a failed install has written, and nothing that existed before.
func (c *Candidate) Discard() error {
	errs := []error{c.RemoveStaged()}
	switch {
	case c.isNew:
		errs = append(errs, cleanup.RemoveAll(c.appDir))
	case c.Label != "" && c.Record.Dir != "":
		errs = append(errs, cleanup.RemoveAll(c.Record.Dir), os.RemoveAll(SumsFile(c.Record.Dir)))
	}
	return errors.Join(errs...)
}

// RemoveStaged removes the temporary files of the install that were not placed.
func (c *Candidate) RemoveStaged() error {
	if c.staged == "" {
		return nil
	}
	return cleanup.RemoveAll(c.staged)
}

// describe fills in the parts of the record that describe the bundle and its source.
func (c *Candidate) describe(o Order) error {
	r := &c.Record
	r.Workspace, r.Source, r.Env, r.Patience, r.Tools = o.Workspace, o.Source, o.Env, o.Patience, o.Tools
	if c.Manifest != nil {
		r.BundleName, r.Version, r.Manifest = c.Manifest.Name, c.Manifest.Version, c.Manifest.Raw
	}
	if o.Exact {
		r.Name = o.ServerName
		return nil
	}
	var err error
	r.Name, err = serverName(o.ServerName, r.BundleName)
	return err
}

// serverName returns an app's server name: the wanted one if given, or else one derived from the bundle's name. The
// name system is reserved for the server's own tools.
func serverName(wanted, bundleName string) (string, error) {
	if wanted == "" {
		wanted = bundleName
	}
	if strings.EqualFold(path.Base(wanted), "system") {
		return "", core.Errorf(core.CodeAlreadyInstalled, "the name system is reserved for the server's own tools")
	}
	return bundle.ServerName(wanted)
}

// LabelOf returns the directory name of a bundle with the given SHA-256 in hex.
func LabelOf(sum string) string { return sum[:labelLength] }

// SetLabel sets the directory name of a bundle that was used in place and is now copied to a directory.
func (c *Candidate) SetLabel(sum string) { c.Label = LabelOf(sum) }
