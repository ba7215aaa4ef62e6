package plugintest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// Trial returns the trial that tests use for a kit. Its seed is always the same.
func Trial(effort kit.Effort) kit.Trial {
	return kit.Trial{Effort: effort, Seed: 1, Start: 10 * time.Second, Shorten: 5 * time.Second}
}

// Judge judges each property of a kit in a subtest with its name. A property that needs more than the test supplies is
// not judged, and its subtest is skipped: `ropewalk plugin test` starts processes, kills them and says what else it
// needs.
func Judge[S any](t *testing.T, properties []kit.Property[S], trial kit.Trial, subject S) {
	t.Helper()
	judgeAll(t, properties, trial, func(*testing.T) S { return subject }, inTime)
}

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

// runner runs a part of a test, in real time or in a bubble.
type runner func(t *testing.T, part func(t *testing.T))

func inTime(t *testing.T, part func(*testing.T)) { part(t) }

func inBubble(t *testing.T, part func(*testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(24 * time.Hour) //nolint:forbidigo // until all timers have fired, by the clock of the bubble
		part(t)
	})
}

// Liar is a correct implementation with a small change that breaks the contract.
type Liar[S any] struct {
	Lie      string               // how it breaks the contract
	Property string               // the name of the property that must fail
	Open     func(t *testing.T) S // starts it; the end of the test ends it
}

// Liars fails for each liar that its property does not catch. A property must not be about a single bug, so it also
// fails for each property with fewer than two liars.
func Liars[S any](t *testing.T, properties []kit.Property[S], trial kit.Trial, liars []Liar[S]) {
	t.Helper()
	judgeLiars(t, properties, trial, liars, inTime)
}

// LiarsInBubbles is Liars in testing/synctest bubbles, where waiting takes no time. It is for liars in the test process
// that use no sockets.
func LiarsInBubbles[S any](t *testing.T, properties []kit.Property[S], trial kit.Trial, liars []Liar[S]) {
	t.Helper()
	judgeLiars(t, properties, trial, liars, inBubble)
}

func judgeLiars[S any](t *testing.T, properties []kit.Property[S], trial kit.Trial, liars []Liar[S], run runner) {
	t.Helper()
	trial.Shorten = 0
	caught := map[string]int{}
	for _, liar := range liars {
		i := slices.IndexFunc(properties, func(p kit.Property[S]) bool { return p.Name == liar.Property })
		if i < 0 {
			t.Errorf("the liar %q names the property %q, which does not exist", liar.Lie, liar.Property)
			continue
		}
		caught[liar.Property]++
		t.Run(liar.Lie, func(t *testing.T) {
			t.Parallel()
			run(t, func(t *testing.T) {
				outcome := properties[i].Judge(t.Context(), trial, liar.Open(t))
				if outcome.Verdict != kit.Fail {
					t.Errorf("the property %q does not catch it: %s %s", liar.Property, outcome.Verdict, outcome.Why)
					return
				}
				if failure, ok := errors.AsType[*kit.Failure](outcome.Err); !ok || !slices.Contains(properties[i].Sentences, failure.Sentence) {
					t.Errorf("the property %q fails otherwise than with a sentence of the contract: %v", liar.Property, outcome.Err)
					return
				}
				t.Log(outcome.Err)
			})
		})
	}
	for _, property := range properties {
		if caught[property.Name] < 2 {
			t.Errorf("the property %q catches %d liars; it must catch several", property.Name, caught[property.Name])
		}
	}
}

// Sentences fails for each sentence that a property is based on but that is not in the .proto files: a kit must not be
// stricter than its contract.
func Sentences[S any](t *testing.T, kind string, properties []kit.Property[S]) {
	t.Helper()
	text := contract(t, kind) + contract(t, "plugin")
	for _, property := range properties {
		if len(property.Sentences) == 0 {
			t.Errorf("the property %q rests on no sentence", property.Name)
		}
		for _, sentence := range property.Sentences {
			if !strings.Contains(text, strings.Join(strings.Fields(sentence), " ")) {
				t.Errorf("the property %q rests on %q, which the contract does not say", property.Name, sentence)
			}
		}
	}
}
