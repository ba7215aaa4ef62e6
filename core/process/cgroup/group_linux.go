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

// What a shim itself needs, beside its program.
const (
	shimMemory = 16 << 20
	shimTasks  = 64
)

// period is how often the kernel grants processor time, in microseconds. leastQuota is the least it grants.
const (
	period     = 100_000
	leastQuota = 1000
)

// endTimeout bounds the end of a group: a process that is stuck in the kernel cannot be ended.
const (
	endTimeout = 10 * time.Second
	endPause   = time.Millisecond
)

// Group is the group of one process tree.
type Group struct {
	dir    string
	handle *os.File // of the directory; nil when the tree has started
	limits sandbox.Limits
	bounds Bounds
}

// New makes a group with those limits that the kernel can hold. The name is for operators.
func (t *Tree) New(name string, l sandbox.Limits) (g *Group, err error) {
	g = &Group{dir: filepath.Join(t.apps, fmt.Sprintf("%s.%d", safe(name), t.made.Add(1))), limits: l, bounds: t.bounds}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("its cgroup cannot be made: %w", err)
	}
	if err := g.bound(); err != nil {
		return nil, errors.Join(fmt.Errorf("the limits of its cgroup cannot be set: %w", err), g.Remove())
	}
	if g.handle, err = os.Open(g.dir); err != nil {
		return nil, errors.Join(err, g.Remove())
	}
	return g, nil
}

// safe is a name without characters that have a meaning in paths or in cgroup file systems.
func safe(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, name[:min(len(name), 100)])
}

// bound sets the limits.
func (g *Group) bound() error {
	if l := g.limits.Memory; l > 0 && g.bounds.Memory {
		if err := errors.Join(write(g.dir, "memory.max", strconv.FormatInt(l+shimMemory, 10)), write(g.dir, "memory.oom.group", "1")); err != nil {
			return err
		}
		// Swapped memory counts as used. The file is missing on a kernel that does not account for it.
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

// Bounds are the limits that the group holds; none for nil.
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

// Started tells that no further process is started in the group from outside.
func (g *Group) Started() {
	if g.handle != nil {
		_ = g.handle.Close()
		g.handle = nil
	}
}

// KillFile ends the whole group when "1" is written to it.
func (g *Group) KillFile() (*os.File, error) {
	return os.OpenFile(filepath.Join(g.dir, killFile), os.O_WRONLY, 0)
}

// Kill sends SIGKILL to all processes of the group.
func (g *Group) Kill() error { return write(g.dir, killFile, "1") }

// Exceeded is the limit of processes that the group is over, in a sentence; "" for none. The kernel bounds
// threads; of processes there may be fewer, and only a group that has so many threads is looked at.
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
		// Those that have ended and were not waited for are in neither list.
		u.Threads, u.Processes = 0, processes+max(tasks-threads, 0)-shim
	}
	return sandbox.Limits{Processes: limit}.Exceeded(u)
}

// Ended is why the kernel ended the group, in a sentence; "" when it did not.
func (g *Group) Ended() string {
	if !g.bounds.Memory || counter(g.dir, "memory.events", "oom_kill") == 0 {
		return ""
	}
	if counter(g.dir, "memory.events", "oom") > 0 && g.limits.Memory > 0 {
		return fmt.Sprintf("needed more than %d MiB of memory and may use no more", g.limits.Memory>>20)
	}
	return "was the largest when the machine, or the server with its apps, had no memory left"
}

// Remove ends what is left in the group and removes it.
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
			return fmt.Errorf("the cgroup %s was sent SIGKILL and is not empty: a process hangs inside the kernel", g.dir)
		}
	}
	return removeAll(g.dir)
}

// removeAll removes a group with those below it, which a program that is not confined could make.
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
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0) // os.WriteFile would try to make a missing one
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// number reads a file of one number; "max" is the highest one.
func number(dir, file string) int64 {
	raw, _ := os.ReadFile(filepath.Join(dir, file)) //nolint:gosec // below the server's group
	text := string(bytes.TrimSpace(raw))
	if text == "max" {
		return math.MaxInt64
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// counter reads a line such as "oom 3".
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
