package kit

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Effort is how many histories a kit tries. It counts histories, not seconds: a slow plugin takes longer but
// does not fail.
type Effort string

// The efforts.
const (
	Quick  Effort = "quick"  // a tenth of normal, while a plugin is being written
	Normal Effort = "normal" // what a plugin must pass
	Deep   Effort = "deep"   // ten times normal, before a release
)

// ParseEffort parses the name of an effort.
func ParseEffort(name string) (Effort, error) {
	switch e := Effort(name); e {
	case Quick, Normal, Deep:
		return e, nil
	}
	return "", fmt.Errorf("the effort %q must be quick, normal or deep", name)
}

// Trial configures how properties are tried.
type Trial struct {
	Effort Effort
	Seed   uint64        // the same seed tries the same histories, with the same operations and faults
	Start  time.Duration // how long the plugin may take to start; every limit that the contract does not set depends on it
	// Shorten is how long to look for a shorter history after a failure.
	Shorten time.Duration

	property string
	covered  []string
}

// Count returns how many histories to try at this effort, given the number for Normal.
func (t *Trial) Count(normal int) int {
	switch t.Effort {
	case Quick:
		return max(1, normal/10)
	case Deep:
		return normal * 10
	}
	return normal
}

// StartTimeout is how long a plugin may take to start unless an author says otherwise. It is the server's default.
const StartTimeout = 30 * time.Second

// Limit returns a limit that the contract leaves to the kit, such as how soon after its deadline a call must return. It
// is least for the usual start time. For a slow plugin or machine, it grows by least for every 10 s by which Start
// exceeds that.
func (t *Trial) Limit(least time.Duration) time.Duration {
	return max(least, time.Duration(float64(least)*(1+(t.Start-StartTimeout).Seconds()/10)))
}

// Rand returns the source of randomness for one history of the property.
func (t *Trial) Rand(history int) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(t.property))
	return rand.New(rand.NewPCG(t.Seed^h.Sum64(), uint64(history))) //nolint:gosec // must be reproducible
}

// Cover records for the report what was tried, and within which limits.
func (t *Trial) Cover(format string, args ...any) {
	t.covered = append(t.covered, fmt.Sprintf(format, args...))
}

// Explore tries n histories that try draws from rapid, in each of several concurrent lanes, whose histories must have
// nothing in common. The error of the shortest failing history ends the property. A history must not depend on earlier
// ones, because it is repeated while it is being shortened. An error from CannotJudge or DoesNotApply, or the end of
// ctx, ends the exploration.
func (t *Trial) Explore(ctx context.Context, lanes, n int, try func(context.Context, *rapid.T)) {
	errs := make([]error, lanes)
	var all sync.WaitGroup
	for lane := range lanes {
		all.Go(func() { errs[lane] = t.explore(ctx, lane, n, try) })
	}
	all.Wait()
	Must(cmp.Or(errs...))
}

func (t *Trial) explore(ctx context.Context, lane, n int, try func(context.Context, *rapid.T)) error {
	e := explorer{name: t.property}
	seed := t.Rand(-1-lane).Uint64() | 1 // 0 means a random seed to rapid
	begin := t.configure(n, seed)
	rapid.Check(&e, func(draw *rapid.T) {
		begin()
		if e.over != nil {
			draw.Skip()
		}
		err := errors.Join(Catch(func() { try(ctx, draw) }), ctx.Err())
		if _, other := errors.AsType[*verdictError](err); other || ctx.Err() != nil {
			e.over = err
			draw.Skip()
		}
		if err != nil {
			e.shortest = err
			draw.Fatal("the history fails") // always the same text, by which rapid recognizes the failure
		}
	})
	switch {
	case e.over != nil:
		return e.over
	case e.shortest == nil && e.failed:
		return fmt.Errorf("the kit is wrong: %s", e.said)
	}
	return e.shortest
}

// rapidFlags guards the flags of package rapid, which are the only way to set its seed and number of histories.
var rapidFlags sync.Mutex

// configure sets the flags for one rapid.Check, which reads them before it calls its property. The property must call
// begin, which releases the flags.
func (t *Trial) configure(checks int, seed uint64) (begin func()) {
	rapidFlags.Lock()
	if !flag.Parsed() { // in a command that does not use package flag
		testing.Init()
		_ = flag.CommandLine.Parse(nil)
	}
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.shrinktime": t.Shorten.String()} {
		if flag.Lookup(name).Value.String() != value { // rapid also reads these flags at other times
			_ = flag.Set(name, value)
		}
	}
	if testing.Short() {
		checks *= 5 // rapid runs only a fifth in short mode
	}
	_ = flag.Set("rapid.checks", strconv.Itoa(checks))
	_ = flag.Set("rapid.seed", strconv.FormatUint(seed, 10))
	return sync.OnceFunc(rapidFlags.Unlock)
}

// explorer is the test that rapid believes it runs in.
type explorer struct {
	name     string
	shortest error // from the shortest failing history so far
	over     error // why the exploration ended early
	failed   bool
	said     string
}

func (e *explorer) Name() string       { return e.name }
func (*explorer) Helper()              {}
func (*explorer) Log(...any)           {}
func (*explorer) Logf(string, ...any)  {}
func (*explorer) Skip(...any)          {}
func (*explorer) Skipf(string, ...any) {}
func (*explorer) SkipNow()             {}
func (e *explorer) Error(...any)       { e.failed = true }
func (e *explorer) Errorf(format string, args ...any) {
	e.failed, e.said = true, e.said+fmt.Sprintf(format, args...)
}
func (e *explorer) Fatal(...any)          { e.failed = true }
func (e *explorer) Fatalf(string, ...any) { e.failed = true }
func (e *explorer) Fail()                 { e.failed = true }
func (e *explorer) FailNow()              { e.failed = true }
func (e *explorer) Failed() bool          { return e.failed }
