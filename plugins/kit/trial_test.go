package kit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// sums returns a property that tries explore.
func sums(explore func(context.Context, *rapid.T) error) kit.Property[int] {
	return kit.Property[int]{Name: "sums", Sentences: []string{"a sum"}, Try: func(ctx context.Context, trial *kit.Trial, _ int) {
		trial.Cover("%d sums", trial.Count(1000))
		trial.Explore(ctx, 1, trial.Count(1000), func(ctx context.Context, draw *rapid.T) { kit.Must(explore(ctx, draw)) })
	}}
}

var normal = kit.Trial{Effort: kit.Normal, Seed: 7, Shorten: 10 * time.Second}

func TestAFailingHistoryIsReportedInItsShortestForm(t *testing.T) {
	t.Parallel()
	sentence := "a sum"
	property := sums(func(_ context.Context, draw *rapid.T) error {
		sum, steps := 0, []string{}
		for _, n := range rapid.SliceOf(rapid.IntRange(0, 1000)).Draw(draw, "numbers") {
			sum += n
			steps = append(steps, fmt.Sprintf("add %d", n))
			if sum > 100 {
				return &kit.Failure{History: steps, Answered: fmt.Sprint(sum), Demanded: "at most 100", Sentence: sentence}
			}
		}
		return nil
	})
	outcome := property.Judge(t.Context(), normal, 0)
	failure, ok := errors.AsType[*kit.Failure](outcome.Err)
	if outcome.Verdict != kit.Fail || !ok || len(failure.History) != 1 || outcome.Covered[0] != "1000 sums" {
		t.Errorf("the outcome is %+v", outcome)
	}
	for _, part := range []string{">  1  add ", "at most 100", `"a sum"`} {
		if !strings.Contains(outcome.Err.Error(), part) {
			t.Errorf("the report lacks %q:\n%v", part, outcome.Err)
		}
	}
	sentence = "something that is not in the contract"
	if outcome := property.Judge(t.Context(), normal, 0); !strings.Contains(fmt.Sprint(outcome.Err), "the kit is wrong") {
		t.Errorf("a failure that cites another sentence is reported as %v", outcome.Err)
	}
}

func TestTheSameSeedTriesTheSameHistories(t *testing.T) {
	t.Parallel()
	histories := func(seed uint64) (drawn []uint64) {
		trial := normal
		trial.Seed = seed
		sums(func(_ context.Context, draw *rapid.T) error {
			drawn = append(drawn, rapid.Uint64().Draw(draw, "n"))
			return nil
		}).Judge(t.Context(), trial, 0)
		return drawn
	}
	first, again, other := histories(1), histories(1), histories(2)
	if fmt.Sprint(first) != fmt.Sprint(again) || fmt.Sprint(first) == fmt.Sprint(other) || len(first) != 1000 {
		t.Errorf("%d, %d and %d numbers were drawn", len(first), len(again), len(other))
	}
}

func TestAVerdictReflectsTheResultOfTheProperty(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		explore func(context.Context, *rapid.T) error
		ctx     context.Context
		want    kit.Verdict
	}{
		"it holds":  {func(context.Context, *rapid.T) error { return nil }, t.Context(), kit.Pass},
		"it fails":  {func(context.Context, *rapid.T) error { return errors.New("no") }, t.Context(), kit.Fail},
		"it panics": {func(context.Context, *rapid.T) error { panic("torn") }, t.Context(), kit.Fail},
		"it fails somewhere": {func(ctx context.Context, _ *rapid.T) error {
			kit.AtOnce(ctx, 9, 3, func(context.Context, int) { kit.Reject("1", "2", "a sum") })
			return nil
		}, t.Context(), kit.Fail},
		"a part of it fails": {func(context.Context, *rapid.T) error {
			if err := kit.Catch(func() { kit.Got(kit.ParseEffort("no")) }); err == nil {
				return errors.New("the error is lost")
			}
			return nil
		}, t.Context(), kit.Pass},
		"it lacks samples": {func(context.Context, *rapid.T) error { return kit.CannotJudge("no samples") }, t.Context(), kit.NotJudged},
		"it is optional":   {func(context.Context, *rapid.T) error { return kit.DoesNotApply("no replace") }, t.Context(), kit.NotApplicable},
		"it is abandoned":  {func(context.Context, *rapid.T) error { return nil }, ended, kit.Fail},
	} {
		if outcome := sums(c.explore).Judge(c.ctx, normal, 0); outcome.Verdict != c.want {
			t.Errorf("%s: the verdict is %s: %v", name, outcome.Verdict, outcome.Err)
		}
	}
}
