package process

import (
	"math"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/process/cgroup"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

func TestSharesNeverExceedWhatTheServerLeaves(t *testing.T) {
	limit, name := cgroup.SharedTasks()
	budget := int(cgroup.LeaveTasks(min(limit, math.MaxInt32)))
	s := shims{shares: map[*share]bool{}}
	p := &sandbox.Profile{Level: sandbox.LevelNamespaces}
	var all []*share
	var err error
	for sum := 0; err == nil; {
		var mine *share
		if mine, err = s.grant(p, nil); err != nil {
			break
		}
		all = append(all, mine)
		if sum += mine.tasks + shimTasks; sum > budget || mine.tasks < leastShare-shimTasks {
			t.Fatalf("share %d is %d of %d; together they are %d", len(all), mine.tasks, budget, sum)
		}
	}
	if text := err.Error(); !strings.Contains(text, name) || !strings.Contains(text, "stop an app") {
		t.Error(text)
	}
	if all[0].tasks < min(usualShare, budget/fewShares)-shimTasks {
		t.Errorf("the first share is %d of %d", all[0].tasks, budget)
	}
	s.release(all[0])
	if _, err := s.grant(p, nil); err != nil {
		t.Errorf("after a program has ended: %v", err)
	}
}

func TestProgramsWhoseTasksAreCountedTogetherHaveOneShare(t *testing.T) {
	s := shims{shares: map[*share]bool{}}
	grant := func(uid int) *share {
		t.Helper()
		mine, err := s.grant(&sandbox.Profile{Level: sandbox.LevelLandlock, UID: uid}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return mine
	}
	first, second, other := grant(firstAppUID), grant(firstAppUID), grant(firstAppUID+1)
	if first != second || first == other {
		t.Errorf("%p, %p and, of another user, %p", first, second, other)
	}
	s.release(first)
	if grant(firstAppUID) != second {
		t.Error("a share ended before its last program")
	}
	few := sandbox.Limits{Processes: 2}
	if mine, err := s.grant(&sandbox.Profile{Level: sandbox.LevelNamespaces, Limits: few}, nil); err != nil || mine.tasks != few.Threads() {
		t.Errorf("a program that may have %d threads: %+v, %v", few.Threads(), mine, err)
	}
}
