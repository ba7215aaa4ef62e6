package mpak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/internal/webclient"
)

// PublicURL is the public mpak registry, the default of the url setting.
const PublicURL = "https://registry.mpak.dev"

// Settings are the registry's settings: url, token, allowPrivateNetwork and timeout.
type Settings = webclient.Settings

// Registry is a client of an mpak registry. It is ready after Configure.
type Registry struct{ webclient.Adapter }

// New returns a Registry that needs Configure.
func New() *Registry { return &Registry{webclient.Adapter{PublicURL: PublicURL}} }

// Name returns "mpak", the adapter's name in registries[].adapter.
func (*Registry) Name() string { return "mpak" }

// Search implements registry.Registry. The cursor is the number of entries on earlier pages.
func (r *Registry) Search(ctx context.Context, q registry.Query) (registry.Page, error) {
	if err := registry.CheckQuery(q); err != nil {
		return registry.Page{}, err
	}
	offset, err := strconv.Atoi(cmp.Or(q.Cursor, "0"))
	if err != nil || offset < 0 {
		return registry.Page{}, fmt.Errorf("%w: the cursor did not come from this registry", plugins.ErrInvalid)
	}
	limit := cmp.Or(q.Limit, registry.DefaultLimit)
	query := url.Values{"limit": {strconv.Itoa(limit)}, "offset": {strconv.Itoa(offset)}}
	if q.Text != "" {
		query.Set("q", q.Text)
	}
	var answer found
	if err := r.Client.Get(ctx, "/v1/bundles/search", query, &answer); err != nil {
		if errors.Is(err, plugins.ErrNotFound) {
			return registry.Page{}, fmt.Errorf("%w: the registry has no /v1/bundles/search: check the url setting", plugins.ErrUnavailable)
		}
		return registry.Page{}, err
	}
	answer.Bundles = answer.Bundles[:min(limit, len(answer.Bundles))]
	var page registry.Page
	for _, b := range answer.Bundles {
		page.Entries = append(page.Entries, registry.Entry{
			Name: b.Name, Title: b.DisplayName, Description: b.Description, Version: b.LatestVersion, TrustScore: b.trust(),
		})
	}
	if next := offset + len(answer.Bundles); len(answer.Bundles) > 0 && (next < answer.Total || answer.Pagination.HasMore) {
		page.NextCursor = strconv.Itoa(next)
	}
	return page, nil
}

var (
	// bundleName matches the names that a bundle of this registry can have.
	bundleName    = regexp.MustCompile(`^@[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)
	bundleVersion = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+_-]*$`)
)

// impossible returns an error that says why no bundle of this registry can have the name or the version.
func impossible(ref registry.Ref) error {
	if !bundleName.MatchString(ref.Name) {
		return fmt.Errorf("%w: %.200q cannot be a name in this registry: names there have the form @scope/bundle", plugins.ErrNotFound, ref.Name)
	}
	return fmt.Errorf("%w: %.100q cannot be a version in this registry: give one version, such as 1.2.0, or none for the newest", plugins.ErrNotFound, ref.Version)
}

// Resolve implements registry.Registry. For a name that no bundle of this registry can have, it returns
// plugins.ErrNotFound without a request.
func (r *Registry) Resolve(ctx context.Context, ref registry.Ref) (registry.Package, error) {
	if err := registry.CheckRef(ref); err != nil {
		return registry.Package{}, err
	}
	if !bundleName.MatchString(ref.Name) || ref.Version != "" && !bundleVersion.MatchString(ref.Version) || ref.Version == "latest" {
		return registry.Package{}, impossible(ref)
	}
	var b bundle
	if err := r.Client.Get(ctx, "/v1/bundles/"+ref.Name, nil, &b); err != nil {
		return registry.Package{}, err
	}
	want := cmp.Or(ref.Version, b.LatestVersion)
	if !bundleVersion.MatchString(want) || b.Name != ref.Name {
		return registry.Package{}, fmt.Errorf("%w: the registry was asked for %s and returned %.200q %.100q", plugins.ErrUnavailable, ref.Name, b.Name, want)
	}
	var v version
	if err := r.Client.Get(ctx, versionPath(ref.Name, want), nil, &v); err != nil {
		return registry.Package{}, err
	}
	return pick(b, v, want, platformOf(ref.OS, ref.Arch))
}

func versionPath(name, version string) string {
	return "/v1/bundles/" + name + "/versions/" + url.PathEscape(version)
}

func pick(b bundle, v version, want string, p platform) (registry.Package, error) {
	if len(v.Artifacts) == 0 || v.Version != want {
		return registry.Package{}, fmt.Errorf("%w: the registry has no files for %s %s", plugins.ErrUnavailable, b.Name, want)
	}
	a, ok := v.choose(p)
	if !ok {
		var has []string
		for _, a := range v.Artifacts {
			has = append(has, a.Platform.OS+"/"+a.Platform.Arch)
		}
		return registry.Package{}, fmt.Errorf("%w: %s %s is available for %s, but not for %s/%s", plugins.ErrNotFound, b.Name, want, strings.Join(has, ", "), p.OS, p.Arch)
	}
	where := url.Values{"name": {b.Name}, "version": {want}, "os": {a.Platform.OS}, "arch": {a.Platform.Arch}}
	return registry.Package{
		Name: b.Name, Version: want, Title: b.DisplayName, Description: b.Description, TrustScore: b.trust(),
		Kind: registry.KindMCPB, Artifact: where.Encode(), SHA256: a.sum(), Size: a.Size,
	}, nil
}

// Fetch implements registry.Registry. The artifact contains the bundle, version and platform. Fetch requests the file's
// address each time, because it is a signed URL that expires.
func (r *Registry) Fetch(ctx context.Context, pkg registry.Package) (io.ReadCloser, error) {
	if err := registry.CheckFetch(pkg); err != nil {
		return nil, err
	}
	where, err := url.ParseQuery(pkg.Artifact)
	name, want := where.Get("name"), where.Get("version")
	if err != nil || where.Encode() != pkg.Artifact || !bundleName.MatchString(name) || !bundleVersion.MatchString(want) {
		return nil, fmt.Errorf("%w: the artifact did not come from this registry", plugins.ErrInvalid)
	}
	var d download
	query := url.Values{"os": {where.Get("os")}, "arch": {where.Get("arch")}}
	if err := r.Client.Get(ctx, versionPath(name, want)+"/download", query, &d); err != nil {
		return nil, err
	}
	if pkg.SHA256 != "" && !strings.EqualFold(d.Bundle.SHA256, pkg.SHA256) {
		return nil, fmt.Errorf("%w: the registry now has a different file for %s %s from the one it had when the version was resolved", plugins.ErrUnavailable, name, want)
	}
	return r.Client.Download(ctx, d.URL)
}
