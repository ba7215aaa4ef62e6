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

// labelLength is how many hex digits of a bundle's SHA-256 name its directory.
const labelLength = 16

// Candidate is a bundle that was found and is not installed yet.
type Candidate struct {
	Record   core.Installation
	Manifest *bundle.Manifest // nil for remote apps
	Label    string           // the name of the bundle's directory; "" when the bundle is used where it is

	Discover bool // as in Order
	TrySSE   bool // the remote app may speak HTTP+SSE, if it does not speak Streamable HTTP

	// Decide makes the permissions of the app that it replaces those of its own; nil keeps them.
	Decide func(before []core.Permission) []core.Permission

	// SkippedScripts are the npm packages whose install scripts were not run.
	SkippedScripts []string

	staged string // a directory below IncomingDir that is removed in any case; "" for none
	appDir string // the app's directory
	isNew  bool   // whether this install made appDir

	// place puts the bundle's files into dir, which does not exist; nil when there are none. It may
	// complete the record's manifest.
	place func(ctx context.Context, c *Candidate, dir string) error
}

// IsPlaced reports whether the bundle is used where it is, or has no files.
func (c *Candidate) IsPlaced() bool { return c.place == nil }

// Place puts the bundle's files into dir, which must not exist.
func (c *Candidate) Place(ctx context.Context, dir string) error {
	c.Record.Dir = dir
	return c.place(ctx, c, dir)
}

// SetAppDir says which directory is the app's, and whether it existed before this install.
func (c *Candidate) SetAppDir(dir string, existed bool) { c.appDir, c.isNew = dir, !existed }

// CheckValues checks the values of the installation against what the bundle asks for.
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

// Discard removes what a failed install has written, and nothing that was there before.
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

// RemoveStaged removes files that were unpacked and not placed.
func (c *Candidate) RemoveStaged() error {
	if c.staged == "" {
		return nil
	}
	return cleanup.RemoveAll(c.staged)
}

// describe fills in what the record says about the bundle.
func (c *Candidate) describe(o Order) error {
	r := &c.Record
	r.Workspace, r.Source, r.Env, r.Patience = o.Workspace, o.Source, o.Env, o.Patience
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

// serverName returns an app's server name: the one that was asked for, else one derived from the
// bundle's. The name system is reserved for the server's own tools.
func serverName(wanted, bundleName string) (string, error) {
	if wanted == "" {
		wanted = bundleName
	}
	if strings.EqualFold(path.Base(wanted), "system") {
		return "", core.Errorf(core.CodeAlreadyInstalled, "the name system is reserved for the server's own tools")
	}
	return bundle.ServerName(wanted)
}

// LabelOf returns the name of the directory of a bundle with a given SHA-256.
func LabelOf(sum string) string { return sum[:labelLength] }

// SetLabel names the directory of a bundle that was used where it is and now gets a directory.
func (c *Candidate) SetLabel(sum string) { c.Label = LabelOf(sum) }
