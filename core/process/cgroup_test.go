//go:build linux

package process_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/cgroup"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// grouped returns the test's cgroup. It skips the test if the cgroup is not delegated; test/unit/boot delegates one.
func grouped(t testing.TB) *cgroup.Tree {
	t.Helper()
	tree, err := cgroup.Take()
	if err == nil {
		err = process.ProbeCgroup(t.Context(), tree)
	}
	if err != nil {
		t.Skip("no cgroups: ", err)
	}
	t.Cleanup(func() {
		if left := groups(t); len(left) > 0 {
			t.Errorf("groups were left behind: %v", left)
		}
		_ = tree.Close()
	})
	return tree
}

// groups returns the directories of the existing process tree groups.
func groups(t testing.TB) (names []string) {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	_, path, _ := strings.Cut(strings.TrimSpace(string(own)), "0::")
	found, _ := filepath.Glob("/sys/fs/cgroup" + filepath.Dir(path) + "/apps/*/")
	return found
}

// levels returns the levels that this machine supports.
func levels(t *testing.T) []sandbox.Level {
	all := []sandbox.Level{sandbox.LevelNone, sandbox.LevelLandlock, sandbox.LevelNamespaces}
	return all[:process.ProbeSandbox(t.Context()).Level+1]
}

// inGroup returns a command in a cgroup with limits, confined or not.
func inGroup(t testing.TB, tree *cgroup.Tree, level sandbox.Level, l sandbox.Limits, kind string, args ...string) process.Command {
	t.Helper()
	c := confined(t, level, kind, args...)
	c.Sandbox.Limits = l
	if level == sandbox.LevelNone {
		c.Sandbox = nil
	}
	c.Cgroup = process.Cgroup{Tree: tree, Name: kind, Limits: l}
	return c
}

func TestATreeThatExceedsTheLimitsOfItsCgroupIsEnded(t *testing.T) {
	tree := grouped(t)
	for _, level := range levels(t) {
		for kind, limits := range map[string]sandbox.Limits{
			"allocate":          {Memory: 64 << 20},
			"allocate-shared":   {Memory: 64 << 20},
			"allocate-detached": {Memory: 64 << 20},
			"multiply":          {Processes: 16},
			"zombies":           {Processes: 16},
			"threads":           {Processes: 16},
		} {
			if level != sandbox.LevelNamespaces && kind == "allocate-detached" {
				continue // landlock prevents such memory, and without a sandbox it belongs to the machine
			}
			t.Run(level.String()+" "+kind, func(t *testing.T) {
				mark := newMark(t)
				endsOverItsLimit(t, inGroup(t, tree, level, limits, kind, mark), mark)
			})
		}
	}
}

func TestAProgramInACgroupExitsAsItWouldOutsideOne(t *testing.T) {
	tree := grouped(t)
	for _, level := range levels(t) {
		t.Run(level.String(), func(t *testing.T) {
			limits := sandbox.Limits{Memory: 256 << 20, Processes: 32, CPU: 2}
			p := start(t, inGroup(t, tree, level, limits, "exit", "7"))
			<-p.Done()
			if exit, ok := errors.AsType[*process.ExitError](p.Err()); !ok || exit.Code != 7 || exit.Limit != "" {
				t.Errorf("ended with %v", p.Err())
			}
			p = start(t, inGroup(t, tree, level, limits, "graceful"))
			if !awaitLine(p.Stdout(), "ready") {
				t.Fatal("it did not start")
			}
			if err := p.Stop(t.Context(), 5*time.Second); err != nil {
				t.Fatal(err)
			}
			if exit, ok := errors.AsType[*process.ExitError](p.Err()); !ok || exit.Code != 7 {
				t.Errorf("stopped with %v", p.Err())
			}
		})
	}
}

func TestProcessChainsEndWithTheirCgroup(t *testing.T) {
	tree := grouped(t)
	for _, level := range levels(t) {
		t.Run(level.String(), func(t *testing.T) {
			p := start(t, inGroup(t, tree, level, sandbox.Limits{}, "chains"))
			if !awaitLine(p.Stdout(), "ready") {
				t.Fatal("the app did not start")
			}
			<-time.After(500 * time.Millisecond) // lets a few thousand processes start
			go func() { _, _ = io.Copy(io.Discard, p.Stdout()) }()
			began := time.Now()
			if err := p.Stop(t.Context(), 10*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("ending it took %v", took)
			}
		})
	}
}

func TestAStoppedShimEndsWithItsCgroup(t *testing.T) {
	tree := grouped(t)
	p := start(t, inGroup(t, tree, sandbox.LevelNone, sandbox.Limits{}, "stop-shim"))
	if !awaitLine(p.Stdout(), "ready") {
		t.Fatal("the app did not start")
	}
	stopped := make(chan error, 1)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	go func() { stopped <- p.Stop(ctx, 0) }()
	if err := <-stopped; err != nil || time.Since(began) > 30*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

func TestATreeThatExceedsItsCgroupsProcessorTimeIsSlowedDown(t *testing.T) {
	tree := grouped(t)
	began := time.Now()
	p := start(t, inGroup(t, tree, sandbox.LevelNone, sandbox.Limits{CPU: 0.25}, "spin"))
	<-p.Done()
	if took := time.Since(began); took < time.Second || p.Err() != nil {
		t.Errorf("500 ms of work took %v (%v), want about 2 s", took, p.Err())
	}
}

func TestAKilledShimLeavesNoCgroup(t *testing.T) {
	tree := grouped(t)
	mark := newMark(t)
	p := start(t, inGroup(t, tree, sandbox.LevelNone, sandbox.Limits{}, "tree", mark))
	if !awaitLine(p.Stdout(), "ready") {
		t.Fatal("the app did not start")
	}
	kill(t, parent(t, p.PID()))
	<-p.Done()
	if left, _ := soon(mark); len(left) > 0 {
		t.Errorf("survivors: %v", left)
	}
}

// BenchmarkStartInACgroup reports how much longer a start takes in a cgroup, including the end of the process.
func BenchmarkStartInACgroup(b *testing.B) {
	tree := grouped(b)
	limits := sandbox.Limits{Memory: 256 << 20, Processes: 32, CPU: 2}
	var took [2][]time.Duration
	for b.Loop() {
		for i := range took {
			c := inGroup(b, tree, sandbox.LevelNone, limits, "")
			c.Path, c.Args = "/bin/true", nil
			if i == 0 {
				c.Cgroup.Tree = nil
			}
			began := time.Now()
			p, err := process.Start(c)
			if err != nil {
				b.Fatal(err)
			}
			<-p.Done()
			took[i] = append(took[i], time.Since(began))
			_ = p.Stdout().Close()
		}
	}
	var median [2]float64
	for i := range took {
		slices.Sort(took[i])
		median[i] = took[i][len(took[i])/2].Seconds() * 1000
	}
	b.ReportMetric(median[0], "ms-without")
	b.ReportMetric(median[1]-median[0], "ms-more")
}
