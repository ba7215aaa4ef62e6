package plugintest

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// Trial returns the trial that tests run a kit with. It always has the same seed. The start time is long because tests
// share their machine with others, and the limits of a trial depend on it.
func Trial(effort kit.Effort) kit.Trial {
	return kit.Trial{Effort: effort, Seed: 1, Start: 3 * kit.StartTimeout, Shorten: 5 * time.Second}
}

// Judge judges each property of a kit in a subtest with its name. A property that needs more than the test supplies is
// not judged, and its subtest is skipped: `ropewalk plugin test` starts processes, kills them and reports what else it
// needs.
func Judge[S any](t *testing.T, properties []kit.Property[S], trial kit.Trial, subject S) {
	t.Helper()
	JudgeIn(t, Time, properties, trial, func(*testing.T) S { return subject })
}

// JudgeIn is Judge with another way to run each property, which gets a subject of its own.
func JudgeIn[S any](t *testing.T, run Runner, properties []kit.Property[S], trial kit.Trial, open func(t *testing.T) S) {
	t.Helper()
	for _, property := range properties {
		t.Run(property.Name, func(t *testing.T) {
			run(t, func(t *testing.T) {
				outcome := property.Judge(t.Context(), trial, open(t))
				switch outcome.Verdict {
				case kit.Fail:
					t.Errorf("seed %d:\n%v", trial.Seed, outcome.Err)
				case kit.NotJudged:
					t.Skip("not judged: " + outcome.Why)
				case kit.NotApplicable:
					t.Skip(outcome.Why)
				case kit.Pass:
					t.Log(strings.Join(outcome.Covered, "; "))
				}
			})
		})
	}
}

// Runner runs a part of a test: Time or Bubble.
type Runner func(t *testing.T, part func(t *testing.T))

// Time runs the part in real time.
func Time(t *testing.T, part func(*testing.T)) { part(t) }

// Bubble runs the part in a testing/synctest bubble, where waiting takes no time. It is for implementations in the test
// process that use no sockets.
func Bubble(t *testing.T, part func(*testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(24 * time.Hour) //nolint:forbidigo // on the bubble's clock: all timers have fired by then
		part(t)
	})
}

// Lies are small changes to a correct implementation, each of which breaks the contract. The first key is the name of
// the property that must fail, and the second says how the change breaks the contract.
type Lies[R any] map[string]map[string]func(R)

// Liars fails for each liar that its property does not catch. A property must not cover only a single bug, so it also
// fails for each property with fewer than two liars. open starts the correct implementation with a change. It runs
// until the test ends.
func Liars[S, R any](t *testing.T, run Runner, properties []kit.Property[S], trial kit.Trial, open func(t *testing.T, change func(R)) S, lies Lies[R]) {
	t.Helper()
	trial.Shorten, trial.Start = 0, 10*time.Second // the shortest limits: a liar that waits must not get away with it
	for _, property := range properties {
		if len(lies[property.Name]) < 2 {
			t.Errorf("there are %d liars for the property %q; each property needs at least two", len(lies[property.Name]), property.Name)
		}
		for lie, change := range lies[property.Name] {
			t.Run(lie, func(t *testing.T) {
				t.Parallel()
				run(t, func(t *testing.T) {
					outcome := property.Judge(t.Context(), trial, open(t, change))
					if outcome.Verdict != kit.Fail {
						t.Errorf("the property %q should have caught this liar: %s %s", property.Name, outcome.Verdict, outcome.Why)
						return
					}
					if failure, ok := errors.AsType[*kit.Failure](outcome.Err); !ok || !property.Says(failure.Sentence) {
						t.Errorf("the property %q should cite a sentence of the contract when it fails: %v", property.Name, outcome.Err)
						return
					}
					t.Log(outcome.Err)
				})
			})
		}
	}
	if len(lies) != len(properties) {
		t.Errorf("there are liars for %d of %d properties", len(lies), len(properties))
	}
}

// Sentences fails for each sentence that the kit in the current directory cites although it is not in the contract of
// the kit's kind: a kit must not be stricter than its contract.
func Sentences(t *testing.T, kind string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	contract, cited := kit.Property[any]{Sentences: kit.Contract(kind)}, 0
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || !strings.Contains(group.Doc.Text(), "sentences of the contract") {
				continue
			}
			for _, spec := range group.Specs {
				sentence, err := strconv.Unquote(spec.(*ast.ValueSpec).Values[0].(*ast.BasicLit).Value)
				if cited++; err != nil || !contract.Says(sentence) {
					t.Errorf("the kit cites %q, which is not in the contract: %v", sentence, err)
				}
			}
		}
	}
	if cited == 0 {
		t.Error("the kit cites no sentence of its contract")
	}
}

// Backend is the fake backend of an implementation in the test process, as a kit.Backend.
type Backend struct {
	mu      sync.Mutex
	stopped bool
	stalled chan struct{} // closed when it works again; nil unless it is stalled
}

// Stop makes the backend unavailable.
func (b *Backend) Stop(context.Context) error { return b.set(true, nil) }

// Stall makes the backend wait.
func (b *Backend) Stall(context.Context) error { return b.set(false, make(chan struct{})) }

// Start makes the backend work again.
func (b *Backend) Start(context.Context) error { return b.set(false, nil) }

func (b *Backend) set(stopped bool, stalled chan struct{}) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stalled != nil {
		close(b.stalled)
	}
	b.stopped, b.stalled = stopped, stalled
	return nil
}

// Reach waits while the backend is stalled. It returns an error if the backend is unavailable or ctx has ended.
func (b *Backend) Reach(ctx context.Context) error {
	b.mu.Lock()
	stopped, stalled := b.stopped, b.stalled
	b.mu.Unlock()
	if stopped {
		return errors.New("the backend is unavailable")
	}
	if stalled != nil {
		select {
		case <-stalled:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
