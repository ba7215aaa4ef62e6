package cgroup

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// takeOwn takes the test's group, if it was delegated. On a systemd machine:
//
//	systemd-run --pipe --wait -p Delegate=yes ./cgroup.test
func takeOwn(t *testing.T) *Tree {
	t.Helper()
	tree, err := Take()
	if err != nil {
		t.Skip("no cgroups: ", err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	return tree
}

// sleeper starts a program in a group.
func sleeper(t *testing.T, g *Group) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	g.Attributes(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestTheServerHasItsOwnGroup(t *testing.T) {
	tree := takeOwn(t)
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(groups)), "/"+serverGroup) {
		t.Errorf("the test is in %s (%v)", groups, err)
	}
	if tree.Bounds() == (Bounds{}) {
		t.Error("no limit is enforced")
	}
}

func TestASecondServerDoesNotTakeTheGroup(t *testing.T) {
	_ = takeOwn(t)
	if _, err := Take(); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("%v", err)
	}
}

func TestLimitsAreSetOnTheGroup(t *testing.T) {
	tree := takeOwn(t)
	if tree.Bounds() != All() {
		t.Skipf("only %v can be enforced", tree.Bounds().Names())
	}
	g, err := tree.New("@some/odd name", sandbox.Limits{Memory: 64 << 20, Processes: 4, CPU: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"memory.max": "83886080", "memory.oom.group": "1", "memory.swap.max": "0", "pids.max": "128", "cpu.max": "50000 100000",
	} {
		if got, err := os.ReadFile(filepath.Join(g.dir, file)); strings.TrimSpace(string(got)) != want && !os.IsNotExist(err) {
			t.Errorf("%s is %s (%v), want %s", file, got, err, want)
		}
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
	free, err := tree.New("free", sandbox.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if number(free.dir, "memory.max") != math.MaxInt64 || number(free.dir, "pids.max") != math.MaxInt64 {
		t.Error("a group without limits enforces some")
	}
	if err := free.Remove(); err != nil {
		t.Error(err)
	}
}

func TestKillingAGroupEndsEverythingInIt(t *testing.T) {
	tree := takeOwn(t)
	g, err := tree.New("app", sandbox.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	cmd := sleeper(t, g)
	if err := os.Mkdir(filepath.Join(g.dir, "nested"), 0o755); err != nil { // as an unconfined program may do
		t.Fatal(err)
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the program exited on its own")
	}
	if _, err := os.Stat(g.dir); !os.IsNotExist(err) {
		t.Errorf("the group was left behind: %v", err)
	}
	if err := g.Remove(); err != nil {
		t.Errorf("removing it again: %v", err)
	}
}

func TestGroupsLeftByAKilledServerAreRemoved(t *testing.T) {
	tree := takeOwn(t)
	g, err := tree.New("left", sandbox.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	cmd := sleeper(t, g)
	if err := tree.Close(); err != nil {
		t.Fatal(err)
	}
	again := takeOwn(t)
	if err := cmd.Wait(); err == nil {
		t.Error("the program exited on its own")
	}
	if _, err := os.Stat(g.dir); !os.IsNotExist(err) || again.Bounds() != tree.Bounds() {
		t.Errorf("the group was left behind: %v; %v", err, again.Bounds())
	}
}
