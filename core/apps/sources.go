package apps

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// labelLength is how much of a bundle's sha256 names its directory, in hex digits.
const labelLength = 16

// resolve finds out what an order means. What it writes lies under incoming.
func (y *Manager) resolve(ctx context.Context, o order) (*arrival, error) {
	switch o.source.Kind {
	case core.SourcePath:
		return y.fromPath(ctx, o)
	case core.SourceName:
		return y.fromRegistry(ctx, o)
	default:
		return fromURL(o)
	}
}

// fromPath takes a bundle directory, which is used where it is, or an .mcpb file.
func (y *Manager) fromPath(ctx context.Context, o order) (*arrival, error) {
	info, err := os.Stat(o.source.Ref)
	switch {
	case err != nil:
		return nil, fmt.Errorf("path: %w", err)
	case info.IsDir():
		m, err := bundle.ReadDir(o.source.Ref)
		if err != nil {
			return nil, fmt.Errorf("path: %w", err)
		}
		found := &arrival{manifest: m}
		found.record.Dir = o.source.Ref
		return found, found.describe(o)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("path: %s is neither a bundle directory nor a .mcpb file", o.source.Ref)
	}
	sum, _, err := bundle.FileSHA256(ctx, o.source.Ref)
	if err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	return y.fromArchive(ctx, o, sum, func(string) (string, error) { return o.source.Ref, nil })
}

// fromArchive unpacks an .mcpb file that get has put somewhere, at best into the directory it is
// given; sum is the sha256 it is known to have.
func (y *Manager) fromArchive(ctx context.Context, o order, sum string, get func(dir string) (string, error)) (_ *arrival, err error) {
	incoming := placesOf(y.o.Home, o.workspace).incoming()
	if err := os.MkdirAll(incoming, 0o700); err != nil {
		return nil, err
	}
	staged, err := os.MkdirTemp(incoming, "bundle-*")
	if err != nil {
		return nil, err
	}
	found := &arrival{staged: staged}
	defer func() {
		if err != nil {
			err = errors.Join(err, found.discard())
		}
	}()
	archive, err := get(staged)
	if err != nil {
		return nil, err
	}
	unpacked := filepath.Join(staged, "bundle")
	if err = bundle.Unpack(ctx, archive, unpacked, bundle.Limits{}); err != nil {
		return nil, err
	}
	if found.manifest, err = bundle.ReadDir(unpacked); err != nil {
		return nil, err
	}
	found.label = sum[:labelLength]
	found.place = func(_ context.Context, f *arrival, dir string) error {
		return errors.Join(os.Rename(unpacked, dir), os.RemoveAll(f.staged))
	}
	return found, found.describe(o)
}

// fromURL takes a remote server. Its version is known once it has been asked.
func fromURL(o order) (*arrival, error) {
	u, err := url.Parse(o.remote.URL)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	name := path.Base(strings.TrimRight(u.Path, "/"))
	if name == "." || name == "/" {
		name = u.Hostname()
	}
	if o.serverName == "" {
		o.serverName = name
	}
	found := &arrival{}
	found.record.Remote = o.remote
	found.record.BundleName = o.remote.URL
	return found, found.describe(o)
}

// describe fills in what the record says about the bundle.
func (f *arrival) describe(o order) error {
	r := &f.record
	r.Workspace, r.Source, r.Env = o.workspace, o.source, o.env
	if f.manifest != nil {
		r.BundleName, r.Version, r.Manifest = f.manifest.Name, f.manifest.Version, f.manifest.Raw
	}
	if o.exact {
		r.Name = o.serverName
		return nil
	}
	var err error
	r.Name, err = shortName(o.serverName, r.BundleName)
	return err
}

// shortName is an app's server name (contract part 3): the one that was asked for, else the
// bundle's. The service's own name is taken for ever, as if an app had it.
func shortName(wanted, bundleName string) (string, error) {
	if wanted == "" {
		wanted = bundleName
	}
	if strings.EqualFold(path.Base(wanted), "system") {
		return "", core.Errorf(core.CodeAlreadyInstalled, "the name system is reserved for the service's own tools")
	}
	return bundle.ServerName(wanted)
}
