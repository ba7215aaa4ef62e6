package registrytest_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// bent is an honest fakeRegistry, but for the one method that is replaced.
type bent struct {
	*fakeRegistry
	search  func(context.Context, *fakeRegistry, registry.Query) (registry.Page, error)
	resolve func(context.Context, *fakeRegistry, registry.Ref) (registry.Package, error)
	fetch   func(context.Context, *fakeRegistry, registry.Package) (io.ReadCloser, error)
}

func (b bent) Search(ctx context.Context, q registry.Query) (registry.Page, error) {
	if b.search == nil {
		return b.fakeRegistry.Search(ctx, q)
	}
	return b.search(ctx, b.fakeRegistry, q)
}

func (b bent) Resolve(ctx context.Context, ref registry.Ref) (registry.Package, error) {
	if b.resolve == nil {
		return b.fakeRegistry.Resolve(ctx, ref)
	}
	return b.resolve(ctx, b.fakeRegistry, ref)
}

func (b bent) Fetch(ctx context.Context, pkg registry.Package) (io.ReadCloser, error) {
	if b.fetch == nil {
		return b.fakeRegistry.Fetch(ctx, pkg)
	}
	return b.fetch(ctx, b.fakeRegistry, pkg)
}

// asks lies about a search by asking another one.
func asks(change func(*registry.Query)) registry.Registry {
	return bent{fakeRegistry: newFakeRegistry(), search: func(ctx context.Context, s *fakeRegistry, q registry.Query) (registry.Page, error) {
		change(&q)
		return s.Search(ctx, q)
	}}
}

// pages lies about a page of an honest search.
func pages(change func(q registry.Query, page *registry.Page)) registry.Registry {
	return bent{fakeRegistry: newFakeRegistry(), search: func(ctx context.Context, s *fakeRegistry, q registry.Query) (registry.Page, error) {
		page, err := s.Search(ctx, q)
		if err == nil {
			change(q, &page)
		}
		return page, err
	}}
}

// gives lies about the package of an honest Resolve.
func gives(change func(ref registry.Ref, pkg *registry.Package)) registry.Registry {
	return bent{fakeRegistry: newFakeRegistry(), resolve: func(ctx context.Context, s *fakeRegistry, ref registry.Ref) (registry.Package, error) {
		pkg, err := s.Resolve(ctx, ref)
		if err == nil {
			change(ref, &pkg)
		}
		return pkg, err
	}}
}

// answers replaces the error of a Resolve that found nothing.
func answers(when func(registry.Ref) bool, with error) registry.Registry {
	return bent{fakeRegistry: newFakeRegistry(), resolve: func(ctx context.Context, s *fakeRegistry, ref registry.Ref) (registry.Package, error) {
		if when(ref) {
			return registry.Package{}, with
		}
		return s.Resolve(ctx, ref)
	}}
}

func namesLoudly(ctx context.Context, s *fakeRegistry, ref registry.Ref) (registry.Package, error) {
	ref.Name = strings.ToLower(ref.Name)
	pkg, err := s.Resolve(ctx, ref)
	pkg.Name = strings.ToUpper(pkg.Name)
	return pkg, err
}

func fallsBack(ctx context.Context, s *fakeRegistry, ref registry.Ref) (registry.Package, error) {
	pkg, err := s.Resolve(ctx, ref)
	if errors.Is(err, plugins.ErrNotFound) {
		ref.Version = ""
		return s.Resolve(ctx, ref)
	}
	return pkg, err
}

func resolvesOlder(ctx context.Context, s *fakeRegistry, ref registry.Ref) (registry.Package, error) {
	if ref.Name == s.older[0].Name && ref.Version == "" {
		ref.Version = s.older[0].Version
	}
	return s.Resolve(ctx, ref)
}

// growing gives other bytes each time, and no digest that could tell.
func growing() registry.Registry {
	times := 0
	return bent{fakeRegistry: newFakeRegistry(),
		resolve: func(ctx context.Context, s *fakeRegistry, ref registry.Ref) (registry.Package, error) {
			pkg, err := s.Resolve(ctx, ref)
			pkg.SHA256, pkg.Size = "", 0
			return pkg, err
		},
		fetch: func(ctx context.Context, s *fakeRegistry, pkg registry.Package) (io.ReadCloser, error) {
			body, err := s.Fetch(ctx, pkg)
			if err != nil {
				return nil, err
			}
			times++
			return io.NopCloser(io.MultiReader(body, strings.NewReader(strings.Repeat("x", times)))), nil
		}}
}

func givesAnything(ctx context.Context, s *fakeRegistry, pkg registry.Package) (io.ReadCloser, error) {
	if body, err := s.Fetch(ctx, pkg); err == nil || errors.Is(err, plugins.ErrInvalid) {
		return body, err
	}
	return io.NopCloser(strings.NewReader("root:x:0:0")), nil
}

func givesAnyKind(ctx context.Context, s *fakeRegistry, pkg registry.Package) (io.ReadCloser, error) {
	if pkg.Kind != registry.KindMCPB {
		return io.NopCloser(strings.NewReader("")), nil
	}
	return s.Fetch(ctx, pkg)
}

// stubborn is a download that can only be closed at its end.
type stubborn struct {
	io.Reader
	ended bool
}

func (s *stubborn) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.ended = s.ended || errors.Is(err, io.EOF)
	return n, err
}

func (s *stubborn) Close() error {
	if !s.ended {
		return errors.New("it is not over")
	}
	return nil
}

func mustBeRead(ctx context.Context, s *fakeRegistry, pkg registry.Package) (io.ReadCloser, error) {
	body, err := s.Fetch(ctx, pkg)
	if err != nil {
		return nil, err
	}
	return &stubborn{Reader: body}, nil
}

func sleepsThroughDeadlines(ctx context.Context, s *fakeRegistry, ref registry.Ref) (registry.Package, error) {
	if ctx.Err() != nil {
		time.Sleep(time.Minute) //nolint:forbidigo // of the fake clock
	}
	return s.Resolve(ctx, ref)
}

// oneAtATime fails a Resolve while another one is under way.
func oneAtATime() registry.Registry {
	var mu sync.Mutex
	return bent{fakeRegistry: newFakeRegistry(), resolve: func(ctx context.Context, s *fakeRegistry, ref registry.Ref) (registry.Package, error) {
		if !mu.TryLock() {
			return registry.Package{}, errors.New("busy")
		}
		defer mu.Unlock()
		time.Sleep(time.Millisecond) //nolint:forbidigo // of the fake clock
		return s.Resolve(ctx, ref)
	}}
}
