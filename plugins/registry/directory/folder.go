package directory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/Masterminds/semver/v3"
	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/plugins"
)

// folder lists the directory on every call, but reads a file only when it has changed.
type folder struct {
	dir string
	log hclog.Logger

	mu    sync.Mutex
	known map[string]*bundle // by file name
	bad   map[string]string  // files that cannot be read, with the logged reason
}

// open opens the folder for one call, so that a replaced or remounted folder is noticed. Nothing outside the folder can
// be reached through it, not even through links.
func (f *folder) open() (*os.Root, error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, fmt.Errorf("%w: the folder cannot be opened: %w", plugins.ErrUnavailable, err)
	}
	return root, nil
}

// bundles returns the folder's readable bundles by name, newest version first, then by file name. A file that cannot be
// read is logged once and skipped.
func (f *folder) bundles(ctx context.Context, root *os.Root) (map[string][]*bundle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("%w: the folder cannot be read: %w", plugins.ErrUnavailable, err)
	}
	known, bad := map[string]*bundle{}, map[string]string{}
	found := map[string][]*bundle{}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !strings.HasSuffix(e.Name(), extension) {
			continue
		}
		b, err := f.bundle(root, e.Name())
		if err != nil {
			bad[e.Name()] = err.Error()
			if f.bad[e.Name()] != err.Error() {
				f.log.Warn("skipped a file in the folder that is not a bundle", "file", e.Name(), "error", err)
			}
			continue
		}
		known[e.Name()] = b
		found[b.Name] = append(found[b.Name], b)
	}
	f.known, f.bad = known, bad
	for _, versions := range found {
		slices.SortFunc(versions, newestFirst)
	}
	return found, nil
}

// Files returns the number of bundles in the folder, and the reason for each file that looks like a bundle but is
// skipped.
func (r *Registry) Files(ctx context.Context) (bundles int, bad map[string]string, err error) {
	root, err := r.folder.open()
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = root.Close() }()
	if _, err := r.folder.bundles(ctx, root); err != nil {
		return 0, nil, err
	}
	r.folder.mu.Lock()
	defer r.folder.mu.Unlock()
	return len(r.folder.known), maps.Clone(r.folder.bad), nil
}

func (f *folder) bundle(root *os.Root, file string) (*bundle, error) {
	info, err := root.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	if b := f.known[file]; b != nil && b.same(info) {
		return b, nil
	}
	return read(root, file)
}

// newestFirst orders bundles by semantic version, newest first: releases before prereleases, other forms of versions
// last, and files of the same version by name.
func newestFirst(a, b *bundle) int {
	return cmp.Or(compareVersions(b.Version, a.Version), cmp.Compare(a.file, b.file))
}

func compareVersions(a, b string) int {
	va, errA := semver.NewVersion(a)
	vb, errB := semver.NewVersion(b)
	if errA != nil || errB != nil {
		return cmp.Or(compareBools(errA == nil, errB == nil), cmp.Compare(a, b))
	}
	return cmp.Or(compareBools(va.Prerelease() == "", vb.Prerelease() == ""), va.Compare(vb), cmp.Compare(a, b))
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
