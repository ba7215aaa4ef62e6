package cgroup

import (
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

func TestLimitsThatTheKernelDoesNotEnforceAreReturned(t *testing.T) {
	all := sandbox.Limits{Memory: 1, Processes: 2, OpenFiles: 3, FileSize: 4, CPU: 5}
	for _, c := range []struct {
		bounds     Bounds
		names      []string
		held, rest sandbox.Limits
	}{
		{Bounds{}, []string{}, sandbox.Limits{}, all},
		{All(), []string{"cpu", "memory", "processes"}, sandbox.Limits{Memory: 1, Processes: 2, CPU: 5}, sandbox.Limits{OpenFiles: 3, FileSize: 4}},
		{Bounds{Memory: true}, []string{"memory"}, sandbox.Limits{Memory: 1}, sandbox.Limits{Processes: 2, OpenFiles: 3, FileSize: 4, CPU: 5}},
	} {
		if names := c.bounds.Names(); !slices.Equal(names, c.names) {
			t.Errorf("%+v is named %v", c.bounds, names)
		}
		if held, rest := c.bounds.Split(all); held != c.held || rest != c.rest {
			t.Errorf("%+v holds %+v and leaves %+v", c.bounds, held, rest)
		}
	}
}
