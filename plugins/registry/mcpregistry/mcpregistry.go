package mcpregistry

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

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/internal/webclient"
)

// PublicURL is the official registry, the default of the url setting.
const PublicURL = "https://registry.modelcontextprotocol.io"

// Settings are the registry's settings: url, token, allowPrivateNetwork and timeout.
type Settings = webclient.Settings

// Registry is a client of an MCP Registry. It is ready after Configure.
type Registry struct {
	webclient.Adapter

	log hclog.Logger
}

// New returns a Registry that needs Configure.
func New() *Registry {
	return &Registry{Adapter: webclient.Adapter{PublicURL: PublicURL}, log: hclog.NewNullLogger()}
}

// Name returns "mcp-registry", the adapter's name in registries[].adapter.
func (*Registry) Name() string { return "mcp-registry" }

// UseLogger sets where the registry logs.
func (r *Registry) UseLogger(log hclog.Logger) { r.log = log }

// Search implements registry.Registry. Deleted entries are left out, so a page may be shorter than the limit without
// being the last.
func (r *Registry) Search(ctx context.Context, q registry.Query) (registry.Page, error) {
	if err := registry.CheckQuery(q); err != nil {
		return registry.Page{}, err
	}
	limit := cmp.Or(q.Limit, registry.DefaultLimit)
	query := url.Values{"version": {latest}, "limit": {strconv.Itoa(limit)}}
	if q.Text != "" {
		query.Set("search", q.Text)
	}
	if q.Cursor != "" {
		query.Set("cursor", q.Cursor)
	}
	var answer list
	if err := r.Client.Get(ctx, "/v0.1/servers", query, &answer); err != nil {
		if errors.Is(err, plugins.ErrNotFound) {
			return registry.Page{}, fmt.Errorf("%w: the registry has no /v0.1/servers: check the url setting", plugins.ErrUnavailable)
		}
		return registry.Page{}, err
	}
	page := registry.Page{NextCursor: answer.Metadata.NextCursor}
	for _, l := range answer.Servers {
		if l.status() == statusDeleted || len(page.Entries) == limit {
			continue
		}
		page.Entries = append(page.Entries, registry.Entry{
			Name: l.Server.Name, Title: l.Server.Title, Description: l.description(), Version: l.Server.Version, TrustScore: l.trust(),
		})
	}
	return page, nil
}

const latest = "latest" // the API's word for the newest version

var (
	// serverName matches the names that a server of this registry can have: reverse DNS with one slash.
	serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)
	// serverVersion matches any single version. The registry itself refuses ranges.
	serverVersion = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+_!~-]*$`)
)

func possible(name, version string) bool {
	return len(name) <= 200 && serverName.MatchString(name) && serverVersion.MatchString(version)
}

// Resolve implements registry.Registry. For a name that no server of this registry can have, it returns
// plugins.ErrNotFound without a request.
func (r *Registry) Resolve(ctx context.Context, ref registry.Ref) (registry.Package, error) {
	if err := registry.CheckRef(ref); err != nil {
		return registry.Package{}, err
	}
	if ref.Version == latest || !possible(ref.Name, cmp.Or(ref.Version, latest)) {
		return registry.Package{}, impossible(ref)
	}
	l, err := r.entry(ctx, ref.Name, cmp.Or(ref.Version, latest))
	if err == nil && l.status() == statusDeleted && ref.Version == "" {
		l, err = r.newestLeft(ctx, ref.Name)
	}
	if err != nil {
		return registry.Package{}, err
	}
	if l.status() == statusDeleted {
		return registry.Package{}, fmt.Errorf("%w: %s %s was deleted from the registry", plugins.ErrNotFound, ref.Name, l.Server.Version)
	}
	if l.Server.Name != ref.Name || ref.Version != "" && l.Server.Version != ref.Version {
		return registry.Package{}, fmt.Errorf("%w: the registry was asked for %s %s and returned %s %s",
			plugins.ErrUnavailable, ref.Name, ref.Version, l.Server.Name, l.Server.Version)
	}
	if l.status() == statusDeprecated {
		r.log.Warn("resolved a bundle that its registry marks as deprecated", "name", ref.Name, "version", l.Server.Version)
	}
	return convert(l)
}

// impossible returns an error that says why no server of this registry can have the name or the version.
func impossible(ref registry.Ref) error {
	if !possible(ref.Name, latest) {
		return fmt.Errorf("%w: %.200q cannot be a name in this registry: names there have the form namespace/name, such as io.github.acme/notes", plugins.ErrNotFound, ref.Name)
	}
	return fmt.Errorf("%w: %.100q cannot be a version in this registry: give one version, such as 1.2.0, or none for the newest", plugins.ErrNotFound, ref.Version)
}

func (r *Registry) entry(ctx context.Context, name, version string) (listing, error) {
	var l listing
	err := r.Client.Get(ctx, "/v0.1/servers/"+url.PathEscape(name)+"/versions/"+url.PathEscape(version), nil, &l)
	return l, err
}

// newestLeft returns the newest version that has not been deleted.
func (r *Registry) newestLeft(ctx context.Context, name string) (listing, error) {
	var answer list
	if err := r.Client.Get(ctx, "/v0.1/servers/"+url.PathEscape(name)+"/versions", nil, &answer); err != nil {
		return listing{}, err
	}
	var newest listing
	for _, l := range answer.Servers {
		if l.status() != statusDeleted && (newest.Server.Name == "" || later(l.Server.Version, newest.Server.Version)) {
			newest = l
		}
	}
	if newest.Server.Name == "" {
		return listing{}, fmt.Errorf("%w: every version of %s was deleted from the registry", plugins.ErrNotFound, name)
	}
	return newest, nil
}

// Fetch implements registry.Registry. The artifact is name@version. Fetch requests the file's address again, so that it
// only ever downloads files that the registry names.
func (r *Registry) Fetch(ctx context.Context, pkg registry.Package) (io.ReadCloser, error) {
	if err := registry.CheckFetch(pkg); err != nil {
		return nil, err
	}
	name, version, _ := strings.Cut(pkg.Artifact, "@")
	if !possible(name, version) {
		return nil, fmt.Errorf("%w: the artifact did not come from this registry", plugins.ErrInvalid)
	}
	l, err := r.entry(ctx, name, version)
	if err != nil {
		return nil, err
	}
	for _, p := range l.Server.Packages {
		if p.RegistryType == string(registry.KindMCPB) && strings.EqualFold(p.FileSHA256, pkg.SHA256) && unusable(p, registry.KindMCPB) == "" {
			return r.Client.Download(ctx, p.Identifier)
		}
	}
	return nil, fmt.Errorf("%w: %s %s no longer has a file with that sha256", plugins.ErrNotFound, name, version)
}
