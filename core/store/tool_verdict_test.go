package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func TestVerdictsOnToolsAreSharedUntilTheyAreOld(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		now := time.Now().Truncate(time.Millisecond)
		put := func(all ...core.ToolVerdict) {
			t.Helper()
			if err := s.PutToolVerdicts(t.Context(), all...); err != nil {
				t.Fatal(err)
			}
		}
		put(core.ToolVerdict{Origin: "a", Hash: "1", Model: "p:m", Reason: "no", At: now}, core.ToolVerdict{Origin: "a", Hash: "2", Model: "p:m", At: now},
			core.ToolVerdict{Origin: "b", Hash: "1", Model: "q:m", Reason: "no", At: now.Add(-time.Hour)})
		put(core.ToolVerdict{Origin: "a", Hash: "1", Model: "p:m", Reason: "still no", At: now})
		for _, c := range []struct {
			origin string
			age    time.Duration
			want   string
		}{{"a", time.Minute, "a1 still no, a2 , "}, {"", time.Minute, "a1 still no, a2 , "}, {"", 2 * time.Hour, "a1 still no, a2 , b1 no, "}, {"c", 2 * time.Hour, ""}} {
			all, err := s.ToolVerdicts(t.Context(), c.origin, now.Add(-c.age))
			got := ""
			for _, v := range all {
				got += v.Origin + v.Hash + " " + v.Reason + ", "
			}
			if err != nil || got != c.want {
				t.Errorf("%q of the last %v: %q, %v, want %q", c.origin, c.age, got, err, c.want)
			}
		}
		put(core.ToolVerdict{Origin: "a", Hash: "3", Reason: "no", At: now.Add(-2 * toolVerdictsKept)})
		if n, err := s.Purge(t.Context(), Retention{}); n != 1 || err != nil {
			t.Errorf("%d rows are purged, %v, want 1", n, err)
		}
	})
}

func TestTheOldestToolVerdictsAreDroppedBeyondTheLimit(t *testing.T) {
	s := open(t)
	now := time.Now()
	all := []core.ToolVerdict{{Origin: "a", Hash: "oldest", At: now.Add(-time.Hour)}}
	for i := range maxToolVerdicts {
		all = append(all, core.ToolVerdict{Origin: "a", Hash: fmt.Sprint(i), At: now})
	}
	if err := s.PutToolVerdicts(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	kept, err := s.ToolVerdicts(t.Context(), "", now.Add(-2*time.Hour))
	if err != nil || len(kept) != maxToolVerdicts {
		t.Fatalf("%d verdicts are kept, %v", len(kept), err)
	}
	for _, v := range kept {
		if v.Hash == "oldest" {
			t.Error("the oldest verdict is kept")
		}
	}
}
