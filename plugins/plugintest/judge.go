package plugintest

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// Trial returns the trial that tests run a kit with. It always has the same seed.
func Trial(effort kit.Effort) kit.Trial {
	return kit.Trial{Effort: effort, Seed: 1, Start: 10 * time.Second, Shorten: 5 * time.Second}
}

// Judge judges each property of a kit in a subtest with its name. A property that needs more than the test supplies is
// not judged, and its subtest is skipped: `ropewalk plugin test` starts processes, kills them and says what else it
// needs.
func Judge[S any](t *testing.T, properties []kit.Property[S], trial kit.Trial, subject S) {
	t.Helper()
	trial.Start = max(trial.Start, busy)
	judgeAll(t, properties, trial, func(*testing.T) S { return subject }, inTime)
}

// busy is the least start time of trials in real time: tests share their machine with others, and the limits of a trial
// depend on it.
const busy = 3 * kit.StartTimeout

// JudgeInBubbles is Judge in testing/synctest bubbles, where waiting takes no time. It is for implementations in the
// test process that use no sockets.
func JudgeInBubbles[S any](t *testing.T, properties []kit.Property[S], trial kit.Trial, open func(t *testing.T) S) {
	t.Helper()
	judgeAll(t, properties, trial, open, inBubble)
}

func judgeAll[S any](t *testing.T, properties []kit.Property[S], trial kit.Trial, open func(t *testing.T) S, run runner) {
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

// runner runs a part of a test, either in real time or in a bubble.
type runner func(t *testing.T, part func(t *testing.T))

func inTime(t *testing.T, part func(*testing.T)) { part(t) }

func inBubble(t *testing.T, part func(*testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(24 * time.Hour) //nolint:forbidigo // on the bubble's clock: all timers have fired by then
		part(t)
	})
}

// Lies are small changes to a correct implementation, each of which breaks the contract. The first key is the name of
// the property that must fail, and the second says how the change breaks the contract.
type Lies[R any] map[string]map[string]func(R)

// Liars fails for each liar that its property does not catch. A property must not be about a single bug, so it also
// fails for each property with fewer than two liars. open starts the correct implementation with a change. It runs
// until the test ends.
func Liars[S, R any](t *testing.T, properties []kit.Property[S], trial kit.Trial, open func(t *testing.T, change func(R)) S, lies Lies[R]) {
	t.Helper()
	judgeLiars(t, properties, trial, open, lies, inTime)
}

// LiarsInBubbles is Liars in testing/synctest bubbles, where waiting takes no time. It is for liars in the test process
// that use no sockets.
func LiarsInBubbles[S, R any](t *testing.T, properties []kit.Property[S], trial kit.Trial, open func(t *testing.T, change func(R)) S, lies Lies[R]) {
	t.Helper()
	judgeLiars(t, properties, trial, open, lies, inBubble)
}

func judgeLiars[S, R any](t *testing.T, properties []kit.Property[S], trial kit.Trial, open func(*testing.T, func(R)) S, lies Lies[R], run runner) {
	t.Helper()
	trial.Shorten = 0
	for _, property := range properties {
		if len(lies[property.Name]) < 2 {
			t.Errorf("the property %q catches %d liars; it must catch several", property.Name, len(lies[property.Name]))
		}
		for lie, change := range lies[property.Name] {
			t.Run(lie, func(t *testing.T) {
				t.Parallel()
				run(t, func(t *testing.T) {
					outcome := property.Judge(t.Context(), trial, open(t, change))
					if outcome.Verdict != kit.Fail {
						t.Errorf("the property %q does not catch it: %s %s", property.Name, outcome.Verdict, outcome.Why)
						return
					}
					if failure, ok := errors.AsType[*kit.Failure](outcome.Err); !ok || !property.Says(failure.Sentence) {
						t.Errorf("the property %q fails without citing a sentence of the contract: %v", property.Name, outcome.Err)
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
					t.Errorf("the kit cites %q, which the contract does not say: %v", sentence, err)
				}
			}
		}
	}
	if cited == 0 {
		t.Error("the kit cites no sentence of its contract")
	}
}
