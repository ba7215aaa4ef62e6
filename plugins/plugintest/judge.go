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

// Trial is how a test tries the properties of a kit: with a seed that is the same every time.
func Trial(effort kit.Effort) kit.Trial {
	return kit.Trial{Effort: effort, Seed: 1, Start: 10 * time.Second, Shorten: 5 * time.Second}
}

// Judge judges each property of a kit as a subtest of its name. What the test does not supply is not judged, and such
// subtests are skipped: `ropewalk plugin test` starts processes, kills them and says what else it needs.
func Judge[S any](t *testing.T, properties []kit.Property[S], trial kit.Trial, subject S) {
	t.Helper()
	judgeAll(t, properties, trial, func(*testing.T) S { return subject }, inTime)
}

// JudgeInBubbles is Judge for an implementation in process without sockets, by the clocks of bubbles of
// testing/synctest: waiting takes no time.
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

// runner runs a part of a test by some clock.
type runner func(t *testing.T, part func(t *testing.T))

func inTime(t *testing.T, part func(*testing.T)) { part(t) }

func inBubble(t *testing.T, part func(*testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(24 * time.Hour) //nolint:forbidigo // until what happens later has happened, by the clock of the bubble
		part(t)
	})
}

// Liar is a wrong plugin as data: a small change to a right implementation.
type Liar[S any] struct {
	Lie      string               // what it does wrong
	Property string               // the name of the property that must fail
	Open     func(t *testing.T) S // starts it; it ends with the test
}

// Liars fails for each liar that its property does not catch. A property is not about one bug: it also fails for a
// property that catches fewer than two of the liars.
func Liars[S any](t *testing.T, properties []kit.Property[S], trial kit.Trial, liars []Liar[S]) {
	t.Helper()
	judgeLiars(t, properties, trial, liars, inTime)
}

// LiarsInBubbles is Liars by the clocks of bubbles of testing/synctest, for liars in process without sockets: they wait
// for nothing.
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

// Sentences fails for each sentence on which a property rests and that the .proto files of its kind do not say: a
// kit must not be stricter than its contract.
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
