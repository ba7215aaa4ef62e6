package apps

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// packageArrival is an app that comes as a package of another registry's kind. Its manifest is
// complete once the package is in its place; until then it names the values that are needed.
func packageArrival(o order, pkg registry.Package, kind bundle.ServerType, command string, place func(context.Context, *arrival, string) error) (*arrival, error) {
	if err := checkVariables(pkg, o.env); err != nil {
		return nil, err
	}
	m, err := packageManifest(pkg, kind, command, nil)
	if err != nil {
		return nil, fmt.Errorf("the registry's entry for %s is not usable: %w", pkg.Name, err)
	}
	sum := sha256.Sum256([]byte(string(pkg.Kind) + "\x00" + pkg.Identifier + "\x00" + packageVersion(pkg)))
	found := &arrival{manifest: m, label: hex.EncodeToString(sum[:])[:labelLength]}
	found.place = func(ctx context.Context, f *arrival, dir string) error {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		return place(ctx, f, dir)
	}
	return found, found.describe(o)
}

// packageVersion is the version of a package in its own registry.
func packageVersion(pkg registry.Package) string { return cmp.Or(pkg.IdentifierVersion, pkg.Version) }

// complete writes the manifest of a package that is in its place.
func (f *arrival) complete(pkg registry.Package, kind bundle.ServerType, command string, args []string) error {
	m, err := packageManifest(pkg, kind, command, args)
	if err != nil {
		return err
	}
	f.manifest, f.record.Manifest = m, m.Raw
	return nil
}

// run runs an installer to its end, in dir. Its whole process tree ends when ctx does.
func (y *Manager) run(ctx context.Context, f *arrival, dir, command string, args ...string) error {
	path := command
	if !filepath.IsAbs(command) {
		var err error
		if path, err = bundle.Lookup(y.o.HostEnv["PATH"])(command); err != nil {
			return fmt.Errorf("%s is needed to install %s and was not found: install it, or add its directory to PATH", command, f.record.BundleName)
		}
	}
	tmp := filepath.Join(placesOf(y.o.Home, f.record.Workspace).data(f.record.Name), "tmp")
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return err
	}
	said := newStderr(discard{}, newRedactor(f.record))
	p, err := process.Start(process.Command{Path: path, Args: args, Dir: dir, Env: installerEnvironment(y.o.HostEnv, tmp), Stderr: said})
	if err != nil {
		return err
	}
	_ = p.Stdin().Close()
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	_, _ = io.Copy(said, p.Stdout()) // ends with the tree
	<-p.Done()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if p.Err() != nil {
		return errors.New(lastWords(filepath.Base(command)+" "+p.Err().Error(), said))
	}
	return nil
}

// discard is a log that nobody reads.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
