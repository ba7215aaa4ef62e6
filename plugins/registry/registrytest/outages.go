package registrytest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// outages are promises of a registry whose backend goes away.
func outages() []Check {
	const away, late = "UNAVAILABLE when it could not be asked", "Calls come concurrently, each with a deadline"
	return []Check{
		{Name: "a search without its backend is unavailable, never an empty page", Contract: away, Run: during(stopped, searchIsUnavailable)},
		{Name: "a resolve without its backend is unavailable, never not found", Contract: away, Run: during(stopped, resolveIsUnavailable)},
		{Name: "a download without its backend is unavailable, never not found", Contract: away, Run: during(stopped, fetchIsUnavailable)},
		{Name: "a download whose backend goes away is not complete", Contract: "any other end means that the bytes are not complete", Run: breaksOff},
		{Name: "calls to a backend that does not answer return by their deadline", Contract: late, Run: during(stalled, returnByDeadline)},
		{Name: "once the backend is back the registry works again", Contract: away, Run: recovers},
		{Name: "a download that was given up ends", Contract: "and the plugin stops working on it", Run: endsDownloads},
		{Name: "calls that were given up use nothing up", Contract: "and the plugin stops working on it", Run: usesNothingUp},
	}
}

const (
	comeback = 15 * time.Second       // how long a registry may take to find its backend again
	short    = 300 * time.Millisecond // the deadline of calls that are given up
)

func stopped(ctx context.Context, b kit.Backend) error { return b.Stop(ctx) }
func stalled(ctx context.Context, b kit.Backend) error { return b.Stall(ctx) }

// fresh is a text that no answer can have been kept for.
func fresh() string { return "qqzzxx" + strings.ToLower(rand.Text()) }

// freshName is such a name, in the form of one that is there: a registry may know by the form that a bundle cannot
// exist.
func freshName(of registry.Package) registry.Ref { return ref(of.Name+"-"+fresh()[:16], "") }

// during looks at a registry whose backend has just gone, given a package that it gave before.
func during(fail func(context.Context, kit.Backend) error, look func(context.Context, registry.Registry, registry.Package) error) func(context.Context, Subject) error {
	return func(ctx context.Context, s Subject) (err error) {
		if s.Backend == nil {
			return kit.Skip("nothing was given to take the backend away with")
		}
		found, err := resolved(ctx, s.Registry)
		if err != nil {
			return err
		}
		pkg := found[0].pkg
		for _, p := range found {
			if p.pkg.Kind == registry.KindMCPB {
				pkg = p.pkg
				break
			}
		}
		if err := fail(ctx, s.Backend); err != nil {
			return fmt.Errorf("take the backend away: %w", err)
		}
		defer func() { err = errors.Join(err, restore(ctx, s)) }()
		return look(ctx, s.Registry, pkg)
	}
}

// restore brings the backend back for the checks that follow. Whether the registry then works is the question of
// one check alone.
func restore(ctx context.Context, s Subject) error {
	if err := s.Backend.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("bring the backend back: %w", err)
	}
	_ = worksAgain(ctx, s.Registry)
	return nil
}

// worksAgain searches until a search succeeds.
func worksAgain(ctx context.Context, r registry.Registry) error {
	for until := time.Now().Add(comeback); ; {
		_, err := r.Search(ctx, registry.Query{Limit: 1})
		if err == nil {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("%s after the backend came back Search still fails: %w", comeback, err)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

func searchIsUnavailable(ctx context.Context, r registry.Registry, _ registry.Package) error {
	_, err := r.Search(ctx, registry.Query{Text: fresh()})
	return mustBe(err, plugins.ErrUnavailable, "Search while the backend is away")
}

func resolveIsUnavailable(ctx context.Context, r registry.Registry, known registry.Package) error {
	_, err := r.Resolve(ctx, freshName(known))
	if err := mustBe(err, plugins.ErrUnavailable, "Resolve of a name while the backend is away"); err != nil {
		return err
	}
	if _, err := r.Resolve(ctx, ref(known.Name, known.Version)); err != nil { // an answer may have been kept
		return mustBe(err, plugins.ErrUnavailable, "Resolve of a bundle that is there, while the backend is away,")
	}
	return nil
}

func fetchIsUnavailable(ctx context.Context, r registry.Registry, known registry.Package) error {
	if known.Kind != registry.KindMCPB {
		return kit.Skip("none of the bundles that the kit looked at is a file to fetch")
	}
	sum, size, err := fetch(ctx, r, known)
	if err != nil {
		return mustBe(err, plugins.ErrUnavailable, "Fetch while the backend is away")
	}
	if known.SHA256 != "" && sum != known.SHA256 || known.Size > 0 && size != known.Size { // whole bytes may have been kept
		return fmt.Errorf("while the backend is away a download ended as if it were complete, after %d bytes", size)
	}
	return nil
}

// breaksOff takes the backend away while a download is under way.
func breaksOff(ctx context.Context, s Subject) (err error) {
	if s.Backend == nil {
		return kit.Skip("nothing was given to take the backend away with")
	}
	return files(ctx, s.Registry, func(p registry.Package) (err error) {
		want, _, err := fetch(ctx, s.Registry, p)
		if err != nil {
			return err
		}
		body, err := s.Registry.Fetch(ctx, p)
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }()
		first := make([]byte, 1)
		if _, err := io.ReadFull(body, first); err != nil {
			return err
		}
		if err := s.Backend.Stop(ctx); err != nil {
			return fmt.Errorf("take the backend away: %w", err)
		}
		defer func() { err = errors.Join(err, restore(ctx, s)) }()
		got, size, err := digest(io.MultiReader(strings.NewReader(string(first)), body))
		if err == nil && got != want {
			return fmt.Errorf("a download whose backend went away ended as if it were complete, after %d bytes", size)
		}
		return nil
	})
}

func returnByDeadline(ctx context.Context, r registry.Registry, known registry.Package) error {
	for what, call := range map[string]func(context.Context) error{
		"Search":  func(ctx context.Context) error { _, err := r.Search(ctx, registry.Query{Text: fresh()}); return err },
		"Resolve": func(ctx context.Context) error { _, err := r.Resolve(ctx, freshName(known)); return err },
		"Fetch": func(ctx context.Context) error {
			if known.Kind != registry.KindMCPB {
				return plugins.ErrUnavailable
			}
			_, _, err := fetch(ctx, r, known)
			if err == nil {
				return plugins.ErrUnavailable // the bytes may have been kept
			}
			return err
		},
	} {
		limited, cancel := context.WithTimeout(ctx, short)
		err := within(short+slack, what+" with a deadline of 300 ms", func() error { return call(limited) })
		cancel()
		if err == nil || errors.Is(err, plugins.ErrNotFound) || errors.Is(err, plugins.ErrInvalid) || errors.Is(err, errLate) {
			return fmt.Errorf("%s of a backend that does not answer must fail soon after its deadline, and not with not found; it returned: %w", what, errors.Join(err))
		}
	}
	return nil
}

func recovers(ctx context.Context, s Subject) error {
	if s.Backend == nil {
		return kit.Skip("nothing was given to take the backend away with")
	}
	found, err := resolved(ctx, s.Registry)
	if err != nil {
		return err
	}
	if err := s.Backend.Stop(ctx); err != nil {
		return fmt.Errorf("take the backend away: %w", err)
	}
	_, _ = s.Registry.Search(ctx, registry.Query{Text: fresh()}) // so that the registry notices
	_, _ = s.Registry.Resolve(ctx, ref(found[0].pkg.Name, ""))
	if err := s.Backend.Start(ctx); err != nil {
		return fmt.Errorf("bring the backend back: %w", err)
	}
	if err := worksAgain(ctx, s.Registry); err != nil {
		return err
	}
	if _, err := s.Registry.Resolve(ctx, ref(found[0].pkg.Name, found[0].pkg.Version)); err != nil {
		return fmt.Errorf("after the backend came back Resolve of %s, which was there before, fails: %w", found[0].pkg.Name, err)
	}
	return nil
}

// usesNothingUp gives up many calls of a backend that does not answer. Once it answers again, the registry has to
// work as before.
func usesNothingUp(ctx context.Context, s Subject) error {
	const calls = 100
	if s.Backend == nil {
		return kit.Skip("nothing was given to take the backend away with")
	}
	found, err := resolved(ctx, s.Registry)
	if err != nil {
		return err
	}
	if err := s.Backend.Stall(ctx); err != nil {
		return fmt.Errorf("have the backend not answer: %w", err)
	}
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() {
			limited, cancel := context.WithTimeout(ctx, short)
			defer cancel()
			_, _ = s.Registry.Resolve(limited, freshName(found[0].pkg))
		})
	}
	wg.Wait()
	if err := restore(ctx, s); err != nil {
		return err
	}
	again, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := s.Registry.Resolve(again, ref(found[0].pkg.Name, found[0].pkg.Version)); err != nil {
		return fmt.Errorf("after %d calls that were given up while the backend did not answer, which it does again: %w", calls, err)
	}
	return nil
}

// endsDownloads gives a download up while it is under way. The backend then has to be asked for no more of it.
func endsDownloads(ctx context.Context, s Subject) error {
	const enough = 64 << 10 // a smaller file is there before anybody can see that it still comes
	if s.Backend == nil {
		return kit.Skip("nothing was given to take the backend away with")
	}
	meter, ok := s.Backend.(kit.Meter)
	if !ok {
		return kit.Skip("the backend that was given does not count what it sends")
	}
	looked := false
	err := files(ctx, s.Registry, func(p registry.Package) error {
		_, size, err := fetch(ctx, s.Registry, p)
		if err != nil || looked || size < enough {
			return err
		}
		looked = true
		return endsDownload(ctx, s.Registry, meter, p)
	})
	if err == nil && !looked {
		return kit.Skip("none of the bundles that the kit looked at has 64 KiB or more")
	}
	return err
}

func endsDownload(ctx context.Context, r registry.Registry, meter kit.Meter, p registry.Package) (err error) {
	if err := meter.Slow(ctx); err != nil {
		return fmt.Errorf("make the backend slow: %w", err)
	}
	defer func() { err = errors.Join(err, meter.Start(context.WithoutCancel(ctx))) }()
	before := meter.Sent()
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan error, 1)
	go func() {
		_, _, err := fetch(limited, r, p)
		over <- err
	}()
	for begun := time.Now(); meter.Sent()-before < 1<<10 && time.Since(begun) < 5*time.Second; {
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	underway := meter.Sent() > before
	cancel()
	select {
	case err := <-over:
		if err == nil {
			return kit.Skip("the bundle was whole before its download could be given up: it did not come from the backend that was given")
		}
	case <-time.After(slack):
		return fmt.Errorf("a download that was given up must return soon; it did not within %s", slack)
	}
	if !underway {
		return kit.Skip("the bundle did not come from the backend that was given")
	}
	if err := pause(ctx, time.Second); err != nil {
		return err
	}
	given := meter.Sent()
	if err := pause(ctx, time.Second); err != nil {
		return err
	}
	if more := meter.Sent() - given; more > kit.SlowPace/2 {
		return fmt.Errorf("a download must end when it is given up; of a backend that sends %d bytes a second it took %d in the second second after that", kit.SlowPace, more)
	}
	return nil
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
