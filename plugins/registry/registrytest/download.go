package registrytest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// parcel is a package and the expected result of its download.
type parcel struct {
	pkg  registry.Package
	sum  string // "" if it is not known
	size int64  // 0 if it is not known
}

// parcels returns up to n files that the registry offers.
func (s Subject) parcels(ctx context.Context, c Catalogue, n int) (all []parcel) {
	for _, b := range c.Bundles {
		for _, ref := range c.good(b) {
			if len(all) == n {
				return all
			}
			pkg, err := s.resolve(ctx, ref)
			if errors.Is(err, plugins.ErrNotFound) {
				continue
			}
			kit.Must(err)
			kit.Must(c.resolves(ref, pkg, nil))
			if pkg.Kind == registry.KindMCPB {
				want := c.resolve(ref).file[pkg.Version]
				all = append(all, parcel{pkg, either(want.SHA256, pkg.SHA256), either(want.Size, pkg.Size)})
			}
		}
	}
	return all
}

func either[T comparable](a, b T) T {
	if a == *new(T) {
		return b
	}
	return a
}

// pieces is a download that a plugin sent in messages.
type pieces interface {
	LargestPiece() int // in bytes, of the messages read so far
}

// fetch reads a package to its end.
func (s Subject) fetch(ctx context.Context, p registry.Package) (sum string, size int64, err error) {
	body, err := s.Registry.Fetch(ctx, p)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = body.Close() }()
	h := sha256.New()
	if size, err = io.Copy(h, body); err != nil {
		return "", size, err
	}
	if from, ok := body.(pieces); ok && from.LargestPiece() > 1<<20 {
		return "", size, failure("Fetch of "+p.Name+" "+p.Version, fmt.Sprintf("a message of %d bytes", from.LargestPiece()), "at most 1 MiB in a message", megabyte)
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// download returns the question whose correct result is the complete file.
func (s Subject) download(p parcel) question {
	call := fmt.Sprintf("Fetch of %s %s", p.pkg.Name, p.pkg.Version)
	return question{call, func(ctx context.Context) error {
		sum, size, err := s.fetch(ctx, p.pkg)
		if err != nil {
			return err
		}
		return p.is(call, sum, size)
	}}
}

// checkDownload returns a call that downloads a file completely.
func (s Subject) checkDownload(p parcel) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		q := s.download(p)
		err := q.ask(ctx)
		if _, failed := errors.AsType[*kit.Failure](err); err == nil || failed {
			return err
		}
		return failure(q.call, message(err), "the whole file", lastByte)
	}
}

// is compares the result of a download with the expected one.
func (p parcel) is(call, sum string, size int64) error {
	if p.sum != "" && sum != p.sum || p.size > 0 && size != p.size {
		return failure(call, fmt.Sprintf("OK after %d bytes with the sha256 %s", size, sum), fmt.Sprintf("the %d bytes of the package, with the sha256 %s, or an error", p.size, p.sum), lastByte)
	}
	return nil
}

// canary is a server on loopback that must not receive any request.
type canary struct {
	*httptest.Server
	asked atomic.Int64
}

func newCanary() *canary {
	c := &canary{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c.asked.Add(1)
		_, _ = w.Write([]byte("PK"))
	}))
	return c
}

// checkRefusal returns a call that fetches an artifact that Resolve never returned.
func (s Subject) checkRefusal(c *canary, p registry.Package) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		_, size, err := s.fetch(ctx, p)
		call := fmt.Sprintf("Fetch of the artifact %.200q", p.Artifact)
		if err == nil {
			return failure(call, fmt.Sprintf("OK after %d bytes", size), "an error, because Resolve never returned it", neverGave)
		}
		if c.asked.Load() > 0 {
			return failure(call, "it sent a request to "+c.URL, "no request", neverGave)
		}
		return nil
	}
}

// forged returns artifacts that Resolve never returned.
func forged(artifact string, c *canary) []string {
	host := strings.TrimPrefix(c.URL, "http://")
	all := append(near(artifact), "", "..", "/etc/passwd", "../../../../../../etc/passwd", "file:///etc/passwd", nonsense0+".mcpb",
		c.URL+"/x.mcpb", "//"+host+"/x.mcpb", "http://user@"+host+"/x.mcpb", host+"/x.mcpb", "@"+host+"/x.mcpb")
	if address, err := url.Parse(artifact); err == nil && address.Host != "" {
		address.Scheme, address.Host = "http", host
		all = append(all, address.String())
	}
	return all
}

const nonsense0 = "qqzzxxjjwwkk"

func downloads(ctx context.Context, t *kit.Trial, s Subject) {
	c := s.catalogue(ctx, t.Rand(0), min(t.Count(30), 100))
	all := s.parcels(ctx, c, t.Count(30))
	trap := newCanary()
	defer trap.Close()
	var calls []func(context.Context) error
	given := map[string]bool{}
	for _, p := range all {
		given[p.pkg.Artifact] = true
		calls = append(calls, s.checkDownload(p))
		other := p
		other.pkg.SHA256, other.pkg.Size, other.pkg.Version, other.pkg.Name = "", 0, "0.0.1", "other"
		calls = append(calls, func(ctx context.Context) error { // fields other than the artifact may be wrong, but the bytes may not
			if sum, size, err := s.fetch(ctx, other.pkg); err == nil {
				return p.is("Fetch with the artifact of "+p.pkg.Name+" in a package with another name", sum, size)
			}
			return nil
		})
	}
	bogus := []parcel{{pkg: registry.Package{Name: "x", Version: "1.0.0", Kind: registry.KindMCPB, Artifact: nonsense0}}}
	for _, p := range append(bogus, all[:min(len(all), t.Count(3))]...) {
		for _, artifact := range forged(p.pkg.Artifact, trap) {
			if p.pkg.Artifact = artifact; !given[artifact] {
				calls = append(calls, s.checkRefusal(trap, p.pkg))
			}
		}
	}
	for _, kind := range []registry.Kind{registry.KindNPM, registry.KindPyPI, registry.KindRemote, ""} {
		calls = append(calls, func(ctx context.Context) error {
			_, _, err := s.fetch(ctx, registry.Package{Name: "x", Version: "1.0.0", Kind: kind, Identifier: "x", Artifact: "x.mcpb"})
			return mustBe(fmt.Sprintf("Fetch of a package of kind %q", kind), err, plugins.ErrInvalid, otherKind)
		})
	}
	atOnce(ctx, calls)
	s.checkRestart(ctx, c, all)
	t.Cover("%d downloads of %d files, and of artifacts and kinds that cannot be downloaded", len(calls), len(all))
}

// checkRestart kills the process in the middle of a download. The next process must serve the complete files.
func (s Subject) checkRestart(ctx context.Context, c Catalogue, all []parcel) {
	if s.Restart == nil || len(all) == 0 {
		return
	}
	largest := slices.MaxFunc(all, func(a, b parcel) int { return int(a.size - b.size) })
	body, err := s.Registry.Fetch(ctx, largest.pkg)
	if err != nil {
		kit.Must(failure("Fetch of "+largest.pkg.Name, message(err), "the file", lastByte))
	}
	_, _ = body.Read(make([]byte, 1))
	killed := s.Restart(ctx)
	_ = body.Close()
	kit.Must(killed)
	for _, p := range append(all[:min(len(all), 3)], largest) {
		ref := registry.Ref{Name: p.pkg.Name, Version: p.pkg.Version, OS: runtime.GOOS, Arch: runtime.GOARCH}
		pkg, err := s.resolve(ctx, ref)
		if errors.Is(err, plugins.ErrNotFound) { // for another platform
			continue
		}
		kit.Must(c.resolves(ref, pkg, err))
		want := c.resolve(ref).file[pkg.Version]
		if err := s.checkDownload(parcel{pkg, either(want.SHA256, pkg.SHA256), either(want.Size, pkg.Size)})(ctx); err != nil {
			kit.Must(fmt.Errorf("after kill -9 in the middle of a download: %w", err))
		}
	}
}
