package cgroup

import (
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/core/sandbox"
)

func TestWhatTheKernelDoesNotHoldIsLeft(t *testing.T) {
	all := sandbox.Limits{Memory: 1, Processes: 2, OpenFiles: 3, FileSize: 4, CPU: 5}
	for _, c := range []struct {
		bounds Bounds
		names  []string
		rest   sandbox.Limits
	}{
		{Bounds{}, []string{}, all},
		{All(), []string{"cpu", "memory", "processes"}, sandbox.Limits{OpenFiles: 3, FileSize: 4}},
		{Bounds{Memory: true}, []string{"memory"}, sandbox.Limits{Processes: 2, OpenFiles: 3, FileSize: 4, CPU: 5}},
	} {
		if names := c.bounds.Names(); !slices.Equal(names, c.names) {
			t.Errorf("%+v is named %v", c.bounds, names)
		}
		if rest := c.bounds.Rest(all); rest != c.rest {
			t.Errorf("%+v leaves %+v", c.bounds, rest)
		}
	}
}
