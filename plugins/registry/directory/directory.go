package directory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// Registry serves a folder of .mcpb files. It is ready after Configure.
type Registry struct {
	log      hclog.Logger
	settings Settings
	folder   *folder
}

// New returns a Registry that needs Configure.
func New() *Registry { return &Registry{log: hclog.NewNullLogger()} }

// Name returns "directory", the adapter's name in registries[].adapter.
func (*Registry) Name() string { return "directory" }

// UseLogger sets where the registry logs.
func (r *Registry) UseLogger(log hclog.Logger) { r.log = log }

// Validate checks settings without applying them.
func (*Registry) Validate(_ context.Context, c plugins.Config) error { return c.Decode(&Settings{}) }

// Configure applies the settings.
func (r *Registry) Configure(_ context.Context, c plugins.Config) error {
	if err := c.Decode(&r.settings); err != nil {
		return err
	}
	r.folder = &folder{dir: r.settings.Dir, log: r.log}
	return nil
}

// Search implements registry.Registry. The cursor is the number of entries on earlier pages.
func (r *Registry) Search(ctx context.Context, q registry.Query) (registry.Page, error) {
	if err := registry.CheckQuery(q); err != nil {
		return registry.Page{}, err
	}
	skip, err := strconv.Atoi(cmp.Or(q.Cursor, "0"))
	if err != nil || skip < 0 {
		return registry.Page{}, fmt.Errorf("%w: the cursor did not come from this registry", plugins.ErrInvalid)
	}
	root, err := r.folder.open()
	if err != nil {
		return registry.Page{}, err
	}
	defer func() { _ = root.Close() }()
	all, err := r.folder.bundles(ctx, root)
	if err != nil {
		return registry.Page{}, err
	}
	found := matching(all, strings.ToLower(strings.TrimSpace(q.Text)))
	limit := cmp.Or(q.Limit, registry.DefaultLimit)
	rest := found[min(skip, len(found)):]
	page := registry.Page{Entries: make([]registry.Entry, 0, min(limit, len(rest)))}
	for _, b := range rest[:min(limit, len(rest))] {
		page.Entries = append(page.Entries, registry.Entry{
			Name: b.Name, Title: b.DisplayName, Description: b.Description, Version: b.Version, TrustScore: r.settings.TrustScore,
		})
	}
	if len(rest) > limit {
		page.NextCursor = strconv.Itoa(skip + limit)
	}
	return page, nil
}

// matching returns the newest version of each bundle that matches a query, best match first, then by name.
func matching(all map[string][]*bundle, text string) []*bundle {
	var found []*bundle
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if newest := all[name][0]; newest.rank(text) < 4 {
			found = append(found, newest)
		}
	}
	slices.SortStableFunc(found, func(a, b *bundle) int { return cmp.Compare(a.rank(text), b.rank(text)) })
	return found
}

// Resolve implements registry.Registry. If several files have the same name and version, it picks the first, by file
// name, that matches the platform.
func (r *Registry) Resolve(ctx context.Context, ref registry.Ref) (registry.Package, error) {
	if err := registry.CheckRef(ref); err != nil {
		return registry.Package{}, err
	}
	root, err := r.folder.open()
	if err != nil {
		return registry.Package{}, err
	}
	defer func() { _ = root.Close() }()
	all, err := r.folder.bundles(ctx, root)
	if err != nil {
		return registry.Package{}, err
	}
	b, err := choose(all[ref.Name], ref)
	if err != nil {
		return registry.Package{}, err
	}
	sum, err := trusted(ctx, root, b)
	if err != nil {
		return registry.Package{}, err
	}
	return registry.Package{
		Name: b.Name, Version: b.Version, Title: b.DisplayName, Description: b.Description, TrustScore: r.settings.TrustScore,
		Kind: registry.KindMCPB, Artifact: b.file, SHA256: sum, Size: b.info.Size(),
	}, nil
}

func choose(versions []*bundle, ref registry.Ref) (*bundle, error) {
	other := false
	for _, b := range versions {
		if ref.Version != "" && b.Version != ref.Version {
			continue
		}
		if b.fits(ref.OS) {
			return b, nil
		}
		other = true
	}
	if other {
		return nil, fmt.Errorf("%w: the folder has %s, but not for %s", plugins.ErrNotFound, ref.Name, ref.OS)
	}
	return nil, fmt.Errorf("%w: the folder has no bundle %s %s", plugins.ErrNotFound, ref.Name, ref.Version)
}

// trusted returns the sha256 of a file. It returns an error if the folder lists a different digest.
func trusted(ctx context.Context, root *os.Root, b *bundle) (string, error) {
	want, err := expected(root, b.file)
	if err != nil {
		return "", fmt.Errorf("%w: %w", plugins.ErrUnavailable, err)
	}
	sum, err := b.digest(ctx, root)
	if err != nil {
		return "", fmt.Errorf("%w: %s: %w", plugins.ErrUnavailable, b.file, err)
	}
	if want != "" && want != sum {
		return "", fmt.Errorf("%w: the sha256 of %s differs from the recorded one, so it is not served", plugins.ErrUnavailable, b.file)
	}
	return sum, nil
}

// offers returns an error unless a file is a bundle that Resolve can return.
func (r *Registry) offers(ctx context.Context, root *os.Root, file string) error {
	all, err := r.folder.bundles(ctx, root)
	if err != nil {
		return err
	}
	for _, versions := range all {
		for _, b := range versions {
			if b.file == file {
				_, err := trusted(ctx, root, b)
				return err
			}
		}
	}
	return fmt.Errorf("%w: %s is not a bundle, so it did not come from this registry", plugins.ErrInvalid, file)
}

// Fetch implements registry.Registry. The artifact is the file's name in the folder.
func (r *Registry) Fetch(ctx context.Context, pkg registry.Package) (io.ReadCloser, error) {
	if err := registry.CheckFetch(pkg); err != nil {
		return nil, err
	}
	if filepath.Base(pkg.Artifact) != pkg.Artifact || !strings.HasSuffix(pkg.Artifact, extension) {
		return nil, fmt.Errorf("%w: the artifact did not come from this registry", plugins.ErrInvalid)
	}
	root, err := r.folder.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat(pkg.Artifact)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: the folder no longer has the file %s", plugins.ErrNotFound, pkg.Artifact)
	}
	if err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a file in the folder", plugins.ErrInvalid, pkg.Artifact)
	}
	if err := r.offers(ctx, root, pkg.Artifact); err != nil {
		return nil, err
	}
	f, err := root.Open(pkg.Artifact)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", plugins.ErrUnavailable, err)
	}
	return struct {
		io.Reader
		io.Closer
	}{reader{ctx, f}, f}, nil
}
