package registrytest_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// fakeRegistry is an honest registry in memory.
type fakeRegistry struct {
	latest []registry.Package
	older  []registry.Package
	files  map[string][]byte
}

// newFakeRegistry has 25 bundles of every kind, the first in two versions.
func newFakeRegistry() *fakeRegistry {
	s := &fakeRegistry{files: map[string][]byte{}}
	s.older = append(s.older, s.mcpb("io.example/a-first", "1.0.0"))
	s.latest = append(s.latest, s.mcpb("io.example/a-first", "2.0.0"), s.mcpb("io.example/b-second", "0.1.0"),
		registry.Package{Name: "io.example/c-npm", Version: "1.1.0", Kind: registry.KindNPM, Identifier: "@example/npm", IdentifierVersion: "1.1.1", Args: []string{"--region={region}"},
			Variables: []registry.Variable{{Name: "API_KEY", Required: true, Secret: true}, {Name: "region", Default: "eu", Choices: []string{"eu", "us"}}}},
		registry.Package{Name: "io.example/d-pypi", Version: "1.2.0", Kind: registry.KindPyPI, Identifier: "example", IdentifierVersion: "1.2.0", TrustScore: 50},
		registry.Package{Name: "io.example/e-remote", Version: "3.0.0", Kind: registry.KindRemote,
			Remote: registry.Remote{Transport: "streamable-http", URL: "https://example.com/mcp", Headers: map[string]string{"X-Key": "{X-Key}"}}, Variables: []registry.Variable{{Name: "X-Key", Required: true}}})
	for i := range 20 {
		s.latest = append(s.latest, s.mcpb(fmt.Sprintf("io.example/f-more-%02d", i), "1.0.0"))
	}
	return s
}

func (s *fakeRegistry) mcpb(name, version string) registry.Package {
	body := bytes.Repeat([]byte(name+version), 10_000)
	sum := sha256.Sum256(body)
	artifact := name + "@" + version
	s.files[artifact] = body
	return registry.Package{Name: name, Version: version, Kind: registry.KindMCPB, Artifact: artifact, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(body)), TrustScore: 75}
}

func (s *fakeRegistry) Search(ctx context.Context, q registry.Query) (registry.Page, error) {
	if err := cmp.Or(registry.CheckQuery(q), ctx.Err()); err != nil {
		return registry.Page{}, err
	}
	skip, _ := strconv.Atoi(q.Cursor)
	limit := cmp.Or(q.Limit, registry.DefaultLimit)
	var page registry.Page
	for i, p := range s.latest {
		if i < skip || !strings.Contains(p.Name, q.Text) {
			continue
		}
		if len(page.Entries) == limit {
			page.NextCursor = strconv.Itoa(i)
			break
		}
		page.Entries = append(page.Entries, registry.Entry{Name: p.Name, Version: p.Version, TrustScore: p.TrustScore})
	}
	return page, nil
}

func (s *fakeRegistry) Resolve(ctx context.Context, ref registry.Ref) (registry.Package, error) {
	if err := cmp.Or(registry.CheckRef(ref), ctx.Err()); err != nil {
		return registry.Package{}, err
	}
	for _, p := range append(s.latest[:len(s.latest):len(s.latest)], s.older...) {
		if p.Name == ref.Name && (ref.Version == "" || ref.Version == p.Version) {
			return p, nil
		}
	}
	return registry.Package{}, plugins.ErrNotFound
}

func (s *fakeRegistry) Fetch(ctx context.Context, pkg registry.Package) (io.ReadCloser, error) {
	if err := cmp.Or(registry.CheckFetch(pkg), ctx.Err()); err != nil {
		return nil, err
	}
	body, ok := s.files[pkg.Artifact]
	if !ok {
		return nil, plugins.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(body)), nil
}
