package registrytest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// backend is what a catalog needs to work, as a kit.Meter.
type backend struct {
	sent    atomic.Int64
	mu      sync.Mutex
	away    bool
	slow    bool
	stalled chan struct{}
}

func (b *backend) Stop(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = true
	return nil
}

func (b *backend) Stall(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stalled = make(chan struct{})
	return nil
}

func (b *backend) Start(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away, b.slow = false, false
	if b.stalled != nil {
		close(b.stalled)
		b.stalled = nil
	}
	return nil
}

func (b *backend) Slow(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slow = true
	return nil
}

func (b *backend) Sent() int64 { return b.sent.Load() }

// read is a read of what the backend sends.
func (b *backend) read(from io.Reader, p []byte) (int, error) {
	b.mu.Lock()
	slow := b.slow
	b.mu.Unlock()
	p = p[:min(len(p), 1000)]
	if slow {
		time.Sleep(time.Second * time.Duration(len(p)) / kit.SlowPace) //nolint:forbidigo // the pace of the backend
	}
	n, err := from.Read(p)
	b.sent.Add(int64(n))
	return n, err
}

// ask returns once the backend has answered, and an error when it does not.
func (b *backend) ask(ctx context.Context) error {
	b.mu.Lock()
	away, stalled := b.away, b.stalled
	b.mu.Unlock()
	if away {
		return plugins.ErrUnavailable
	}
	if stalled == nil {
		return nil
	}
	select {
	case <-stalled:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", plugins.ErrUnavailable, ctx.Err())
	}
}

// remote is an honest catalog with a backend, but for what is set.
type remote struct {
	*catalog
	backend   *backend
	asks      func(context.Context, *backend) error // in place of backend.ask
	searches  func(error) (registry.Page, error)    // answers a search that failed
	resolves  error                                 // of a resolve that failed
	fetches   error                                 // of a download that failed
	breaksOff func(read io.Reader, b *backend) io.Reader
	gaveUp    func(read io.Reader) // does what remains of a download that was given up
}

func (r remote) ask(ctx context.Context) error {
	if r.asks != nil {
		return r.asks(ctx, r.backend)
	}
	return r.backend.ask(ctx)
}

func (r remote) Search(ctx context.Context, q registry.Query) (registry.Page, error) {
	if err := r.ask(ctx); err != nil {
		if r.searches != nil {
			return r.searches(err)
		}
		return registry.Page{}, err
	}
	return r.catalog.Search(ctx, q)
}

func (r remote) Resolve(ctx context.Context, ref registry.Ref) (registry.Package, error) {
	if err := r.ask(ctx); err != nil {
		return registry.Package{}, cmp.Or(r.resolves, err)
	}
	return r.catalog.Resolve(ctx, ref)
}

func (r remote) Fetch(ctx context.Context, pkg registry.Package) (io.ReadCloser, error) {
	if err := r.ask(ctx); err != nil {
		return nil, cmp.Or(r.fetches, err)
	}
	body, err := r.catalog.Fetch(ctx, pkg)
	if err != nil {
		return nil, err
	}
	read := io.Reader(whileThere{body, r.backend})
	if r.breaksOff != nil {
		read = r.breaksOff(body, r.backend)
	}
	return &underway{Reader: read, ctx: ctx, gaveUp: r.gaveUp}, nil
}

// underway is a download, which ends with its context.
type underway struct {
	io.Reader
	ctx    context.Context
	gaveUp func(io.Reader)
}

func (u *underway) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.Reader.Read(p)
}

func (u *underway) Close() error {
	if u.ctx.Err() != nil && u.gaveUp != nil {
		u.gaveUp(u.Reader)
	}
	return nil
}

// whileThere reads as long as the backend is there.
type whileThere struct {
	io.Reader
	backend *backend
}

func (w whileThere) Read(p []byte) (int, error) {
	if err := w.backend.ask(context.Background()); err != nil {
		return 0, err
	}
	return w.backend.read(w.Reader, p)
}

// endsEarly takes the end of a connection for the end of a file.
type endsEarly struct{ whileThere }

func (e endsEarly) Read(p []byte) (int, error) {
	n, err := e.whileThere.Read(p)
	if errors.Is(err, plugins.ErrUnavailable) {
		return n, io.EOF
	}
	return n, err
}

func outageLies() map[string]struct {
	check string
	lie   remote
} {
	type l = struct {
		check string
		lie   remote
	}
	const late, again, up = "calls to a backend that does not answer return by their deadline", "once the backend is back the registry works again", "calls that were given up use nothing up"
	const ends = "a download that was given up ends"
	return map[string]l{
		"finds nothing while its backend is away":                     {"a search without its backend is unavailable, never an empty page", remote{searches: func(error) (registry.Page, error) { return registry.Page{}, nil }}},
		"answers not found to searches while its backend is away":     {"a search without its backend is unavailable, never an empty page", remote{searches: func(error) (registry.Page, error) { return registry.Page{}, plugins.ErrNotFound }}},
		"takes a backend that is away for a bundle that is not there": {"a resolve without its backend is unavailable, never not found", remote{resolves: plugins.ErrNotFound}},
		"takes a backend that is away for a bad name":                 {"a resolve without its backend is unavailable, never not found", remote{resolves: plugins.ErrInvalid}},
		"takes a backend that is away for a file that is not there":   {"a download without its backend is unavailable, never not found", remote{fetches: plugins.ErrNotFound}},
		"takes the end of a connection for the end of a file":         {"a download whose backend goes away is not complete", remote{breaksOff: func(read io.Reader, b *backend) io.Reader { return endsEarly{whileThere{read, b}} }}},
		"waits for its backend whatever the deadline is":              {late, remote{asks: func(_ context.Context, b *backend) error { return b.ask(context.Background()) }}},
		"takes a slow backend for a bundle that is not there": {late, remote{asks: func(ctx context.Context, b *backend) error {
			if err := b.ask(ctx); err != nil {
				return plugins.ErrNotFound
			}
			return nil
		}}},
		"reads the rest of a download that was given up":    {ends, remote{gaveUp: func(read io.Reader) { go func() { _, _ = io.Copy(io.Discard, read) }() }}},
		"returns from a download only when it is whole":     {ends, remote{gaveUp: func(read io.Reader) { _, _ = io.Copy(io.Discard, read) }}},
		"does not look again for a backend that was away":   {again, remote{asks: onceAway()}},
		"keeps a connection of each call that was given up": {up, remote{asks: keepsConnections()}},
	}
}

func onceAway() func(context.Context, *backend) error {
	var mu sync.Mutex
	gone := false
	return func(ctx context.Context, b *backend) error {
		err := b.ask(ctx)
		mu.Lock()
		defer mu.Unlock()
		if gone = gone || err != nil; gone {
			return plugins.ErrUnavailable
		}
		return nil
	}
}

// keepsConnections has ten connections, and does not get one back from a call that was given up.
func keepsConnections() func(context.Context, *backend) error {
	made := sync.OnceValue(func() chan struct{} { return make(chan struct{}, 10) }) // by the first call, on its clock
	return func(ctx context.Context, b *backend) error {
		connections := made()
		select {
		case connections <- struct{}{}:
		case <-ctx.Done():
			return plugins.ErrUnavailable
		}
		if err := b.ask(ctx); err != nil {
			return err
		}
		<-connections
		return nil
	}
}
