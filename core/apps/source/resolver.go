package source

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/pasted"
	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/core/config"
)

// Resolver finds bundles and prepares them for installation.
type Resolver struct {
	Home    string            // the server's home directory
	HostEnv map[string]string // the host's environment; package managers see part of it
	// InstallScripts reports whether the configuration allows the install scripts of an app.
	InstallScripts func(workspace, name string) bool
	Registries     func() []NamedRegistry // the registries, in the order in which they are queried
	Logger         hclog.Logger

	Confinement instance.Confinement                        // how package managers can be confined on this machine
	Sandbox     func(workspace, name string) config.Sandbox // the sandbox settings of an app; nil for no sandbox
}

// Resolve finds the bundle of an order. It writes only to IncomingDir.
func (r *Resolver) Resolve(ctx context.Context, o Order) (*Candidate, error) {
	o = o.sealed()
	switch o.Source.Kind {
	case core.SourcePath:
		return r.fromPath(ctx, o)
	case core.SourceName:
		o.report("resolving", "bundle "+o.Source.Ref)
		return r.fromRegistry(ctx, o)
	case core.SourceNPM:
		return r.fromNPMName(ctx, o)
	case core.SourcePyPI:
		return r.fromPyPIName(ctx, o)
	case core.SourceCommand:
		return r.fromCommand(o)
	case core.SourceUpload:
		return nil, badRequest("the app was uploaded: upload it again")
	default:
		return fromURL(o)
	}
}

// fromPath reads a bundle directory, which is used in place, or an .mcpb file.
func (r *Resolver) fromPath(ctx context.Context, o Order) (*Candidate, error) {
	info, err := os.Stat(o.Source.Ref)
	switch {
	case err != nil:
		return nil, fmt.Errorf("path: %w", err)
	case info.IsDir():
		m, err := bundle.ReadDir(o.Source.Ref)
		if err != nil {
			return nil, fmt.Errorf("path: %w", err)
		}
		c := &Candidate{Manifest: m}
		c.Record.Dir = o.Source.Ref
		if err := o.checkSigned(nil); err != nil {
			return nil, err
		}
		return c, c.describe(o)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("path: %s is neither a bundle directory nor a .mcpb file", o.Source.Ref)
	}
	sum, _, err := bundle.FileSHA256(ctx, o.Source.Ref)
	if err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	c, err := r.fromArchive(ctx, o, sum, func(string) (string, error) { return o.Source.Ref, nil })
	if command := pasted.ScriptCommand(o.Source.Ref); command != "" && errors.Is(err, bundle.ErrArchive) {
		return nil, fmt.Errorf("path: %s is not a bundle; install the command that runs it: %s", o.Source.Ref, command)
	}
	return c, err
}

// fromArchive unpacks an .mcpb file. get returns the path of the file; it may write the file to dir. sum is the SHA-256
// of the file.
func (r *Resolver) fromArchive(ctx context.Context, o Order, sum string, get func(dir string) (string, error)) (_ *Candidate, err error) {
	incoming := LayoutOf(r.Home, o.Workspace).IncomingDir()
	if err := os.MkdirAll(incoming, 0o700); err != nil {
		return nil, err
	}
	staged, err := os.MkdirTemp(incoming, "bundle-*")
	if err != nil {
		return nil, err
	}
	c := &Candidate{staged: staged}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Discard())
		}
	}()
	archive, err := get(staged)
	if err != nil {
		return nil, err
	}
	signature, err := bundle.VerifySignature(ctx, archive)
	if err != nil {
		return nil, err
	}
	if err = o.checkSigned(signature); err != nil {
		return nil, err
	}
	if signature != nil {
		c.Record.Signature = &core.BundleSignature{Signer: signature.Signer, Fingerprint: signature.Fingerprint, Trusted: signature.Trusted(o.Signers)}
	}
	unpacked := filepath.Join(staged, "bundle")
	if err = bundle.Unpack(ctx, archive, unpacked, bundle.Limits{}); err != nil {
		return nil, err
	}
	if c.Manifest, err = bundle.ReadDir(unpacked); err != nil {
		return nil, err
	}
	c.Label = sum[:labelLength]
	c.place = func(_ context.Context, c *Candidate, dir string) error {
		return errors.Join(os.Rename(unpacked, dir), c.RemoveStaged())
	}
	return c, c.describe(o)
}

// fromURL describes a remote server. Its version becomes known when it is first called.
func fromURL(o Order) (*Candidate, error) {
	u, err := url.Parse(o.Remote.URL)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	name := path.Base(strings.TrimRight(u.Path, "/"))
	if name == "." || name == "/" {
		name = u.Hostname()
	}
	if o.ServerName == "" {
		o.ServerName = name
	}
	c := &Candidate{TrySSE: o.TrySSE, Discover: o.Discover}
	c.Record.Remote = o.Remote
	c.Record.BundleName = o.Remote.URL
	return c, c.describe(o)
}
