package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// Files of a group.
const (
	procsFile  = "cgroup.procs"
	killFile   = "cgroup.kill"
	eventsFile = "cgroup.events"
)

// The resources that a shim needs for itself, in addition to those of the app's program.
const (
	shimMemory = 16 << 20
	shimTasks  = 64
)

// period is how often the kernel grants processor time, in microseconds. leastQuota is the smallest grant that it
// accepts.
const (
	period     = 100_000
	leastQuota = 1000
)

// endTimeout bounds how long ending a group may take: a process that is stuck in the kernel cannot be killed.
const (
	endTimeout = 10 * time.Second
	endPause   = time.Millisecond
)

// Group is the group of one process tree.
type Group struct {
	dir    string
	handle *os.File // the open directory; nil once the tree has started
	limits sandbox.Limits
	bounds Bounds
}

// New creates a group, and sets the limits that the kernel can enforce. The name is shown to operators.
func (t *Tree) New(name string, l sandbox.Limits) (g *Group, err error) {
	g = &Group{dir: filepath.Join(t.apps, fmt.Sprintf("%s.%d", safe(name), t.made.Add(1))), limits: l, bounds: t.bounds}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot create the app's cgroup: %w", err)
	}
	if err := g.bound(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot set the limits of the app's cgroup: %w", err), g.Remove())
	}
	if g.handle, err = os.Open(g.dir); err != nil {
		return nil, errors.Join(err, g.Remove())
	}
	return g, nil
}

// safe returns a name without characters that are special in paths or cgroup file systems.
func safe(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, name[:min(len(name), 100)])
}

// bound sets the group's limits.
func (g *Group) bound() error {
	if l := g.limits.Memory; l > 0 && g.bounds.Memory {
		if err := errors.Join(write(g.dir, "memory.max", strconv.FormatInt(l+shimMemory, 10)), write(g.dir, "memory.oom.group", "1")); err != nil {
			return err
		}
		// Swap counts as memory used. The file is missing on kernels without swap accounting.
		if err := write(g.dir, "memory.swap.max", "0"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if g.limits.Processes > 0 && g.bounds.Processes {
		if err := write(g.dir, "pids.max", strconv.Itoa(g.limits.Threads()+shimTasks)); err != nil {
			return err
		}
	}
	if l := g.limits.CPU; l > 0 && g.bounds.CPU {
		return write(g.dir, "cpu.max", fmt.Sprintf("%d %d", max(int64(l*period), leastQuota), period))
	}
	return nil
}

// Bounds returns the limits that the group enforces; none for a nil group.
func (g *Group) Bounds() Bounds {
	if g == nil {
		return Bounds{}
	}
	return g.bounds
}

// Attributes makes a process start in the group.
func (g *Group) Attributes(attr *syscall.SysProcAttr) {
	attr.UseCgroupFD, attr.CgroupFD = true, int(g.handle.Fd())
}

// Started declares that no other process will be started in the group from outside.
func (g *Group) Started() {
	if g.handle != nil {
		_ = g.handle.Close()
		g.handle = nil
	}
}

// KillFile returns a file that kills the whole group when "1" is written to it.
func (g *Group) KillFile() (*os.File, error) {
	return os.OpenFile(filepath.Join(g.dir, killFile), os.O_WRONLY, 0)
}

// Kill sends SIGKILL to all processes in the group.
func (g *Group) Kill() error { return write(g.dir, killFile, "1") }

// Exceeded returns a sentence about the process limit that the group exceeds, or "". The kernel limits only threads.
// The limit on processes is lower, so Exceeded counts processes only if the group has more threads than that.
func (g *Group) Exceeded() string {
	limit := g.limits.Processes
	if limit == 0 || !g.bounds.Processes {
		return ""
	}
	tasks := int(number(g.dir, "pids.current"))
	if tasks <= limit {
		return ""
	}
	u := sandbox.Usage{Threads: tasks}
	if counter(g.dir, "pids.events", "max") > 0 && tasks >= g.limits.Threads() {
		u.Threads = g.limits.Threads() + 1
	} else {
		threads, processes := lines(g.dir, "cgroup.threads"), lines(g.dir, procsFile)
		const shim = 1
		// Processes that have ended but were not waited for are in neither list.
		u.Threads, u.Processes = 0, processes+max(tasks-threads, 0)-shim
	}
	return sandbox.Limits{Processes: limit}.Exceeded(u)
}

// Ended returns a sentence about why the kernel ended the group, or "" if it did not.
func (g *Group) Ended() string {
	if !g.bounds.Memory || counter(g.dir, "memory.events", "oom_kill") == 0 {
		return ""
	}
	if counter(g.dir, "memory.events", "oom") > 0 && g.limits.Memory > 0 {
		return fmt.Sprintf("needed more memory than it may use; the limit is %d MiB", g.limits.Memory>>20)
	}
	return "was the largest when the machine, or the server with its apps, had no memory left"
}

// Remove kills all processes that are left in the group, and removes the group.
func (g *Group) Remove() error {
	g.Started()
	if err := g.Kill(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	for until := time.Now().Add(endTimeout); counter(g.dir, eventsFile, "populated") > 0; <-time.After(endPause) {
		if time.Now().After(until) {
			return fmt.Errorf("the cgroup %s was sent SIGKILL but is not empty: a process is stuck in the kernel", g.dir)
		}
	}
	return removeAll(g.dir)
}

// removeAll removes a group and the groups below it, which an unconfined program may have created.
func removeAll(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeAll(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(dir)
}

func write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0) // os.WriteFile would try to create a missing file
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// number reads a file that holds one number. "max" is the highest int64.
func number(dir, file string) int64 {
	raw, _ := os.ReadFile(filepath.Join(dir, file)) //nolint:gosec // below the server's group
	text := string(bytes.TrimSpace(raw))
	if text == "max" {
		return math.MaxInt64
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// counter reads the number in a line such as "oom 3".
func counter(dir, file, name string) int64 {
	raw, _ := os.ReadFile(filepath.Join(dir, file)) //nolint:gosec // below the server's group
	for line := range strings.Lines(string(raw)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == name {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}

func lines(dir, file string) int {
	raw, _ := os.ReadFile(filepath.Join(dir, file)) //nolint:gosec // below the server's group
	return bytes.Count(raw, []byte("\n"))
}
