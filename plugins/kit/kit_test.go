package kit_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

func TestRunReportsEachCheckAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks := []kit.Check[int]{
			{Name: "holds", Run: func(_ context.Context, subject int) error {
				if subject != 7 {
					return errors.New("the subject is another")
				}
				return nil
			}},
			{Name: "fails", Run: func(context.Context, int) error { return errors.New("missing") }},
			{Name: "panics", Run: func(context.Context, int) error { panic("torn") }},
			{Name: "waits for ever", Run: func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }},
			{Name: "holds too", Run: func(context.Context, int) error { return nil }},
		}
		results := kit.Run(t.Context(), checks, 7)
		if failed := kit.Failed(results); !slices.Equal(failed, []string{"fails", "panics", "waits for ever"}) {
			t.Errorf("failed: %v", failed)
		}
		if err := results[2].Err; err == nil || !strings.Contains(err.Error(), "torn") {
			t.Errorf("the panic is reported as %v", err)
		}
		if took := results[3].Took; took != time.Minute {
			t.Errorf("a check that waits for ever took %s", took)
		}
	})
}
