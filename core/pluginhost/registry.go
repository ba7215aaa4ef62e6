package pluginhost

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// Registry is a bundle registry in its own process. It implements registry.Registry. Close it when it is no
// longer used.
type Registry struct{ *slot[registry.Registry] }

// Registry starts a configured registry, as open does.
func (h *Host) Registry(ctx context.Context, p config.Plugin, old ...*Registry) (*Registry, error) {
	s, err := open(ctx, h, kind[registry.Registry]{plugins.KindRegistry, registry.Clients(), func(ctx context.Context, r registry.Registry) error {
		_, err := r.Search(ctx, registry.Query{Limit: 1})
		return err
	}}, p, old)
	if err != nil {
		return nil, err
	}
	return &Registry{s}, nil
}

// Search implements registry.Registry.
func (r Registry) Search(ctx context.Context, q registry.Query) (registry.Page, error) {
	return ask(ctx, r.call, func(ctx context.Context, reg registry.Registry) (registry.Page, error) { return reg.Search(ctx, q) })
}

// Resolve implements registry.Registry.
func (r Registry) Resolve(ctx context.Context, ref registry.Ref) (registry.Package, error) {
	return ask(ctx, r.call, func(ctx context.Context, reg registry.Registry) (registry.Package, error) {
		return reg.Resolve(ctx, ref)
	})
}

// Fetch implements registry.Registry. The plugin keeps running until the reader is closed, even if the handle
// is closed.
func (r Registry) Fetch(ctx context.Context, pkg registry.Package) (io.ReadCloser, error) {
	g, err := r.acquire(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	body, err := g.client.Fetch(ctx, pkg)
	err = r.secrets.redactError(err)
	r.count(g, err, time.Since(began))
	if err != nil {
		g.slot.release(g)
		return nil, err
	}
	return &download{ReadCloser: body, release: sync.OnceFunc(func() { g.slot.release(g) })}, nil
}

// download is a reader that keeps its generation in use until it is closed.
type download struct {
	io.ReadCloser
	release func()
}

// LargestPiece returns the size of the largest message in the download, for the conformance kit.
func (d *download) LargestPiece() int {
	if pieces, ok := d.ReadCloser.(interface{ LargestPiece() int }); ok {
		return pieces.LargestPiece()
	}
	return 0
}

func (d *download) Close() error {
	defer d.release()
	return d.ReadCloser.Close()
}
