package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// The groups below the server's.
const (
	serverGroup = "server"
	appsGroup   = "apps"
)

// moveRounds bounds how often processes that were started meanwhile are moved, too.
const moveRounds = 20

// Tree is the server's own group, with those that it makes.
type Tree struct {
	apps   string // the directory of the group of all apps
	lock   *os.File
	bounds Bounds
	made   atomic.Int64 // groups
}

// Take makes the server's group ready for others, and removes those that a server left that was killed. An
// error says why there can be none.
func Take() (*Tree, error) {
	dir, err := ownGroup()
	if err != nil {
		return nil, err
	}
	return take(dir)
}

// take does the work of Take in a group that was delegated.
func take(dir string) (t *Tree, err error) {
	lock, err := lockGroup(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = lock.Close()
		}
	}()
	t = &Tree{apps: filepath.Join(dir, appsGroup), lock: lock}
	for _, group := range []string{serverGroup, appsGroup} {
		if err := os.Mkdir(filepath.Join(dir, group), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("its cgroup cannot be divided: %w", err)
		}
	}
	if _, err := os.Stat(filepath.Join(t.apps, killFile)); err != nil {
		return nil, errors.New("the kernel cannot end a cgroup at once (Linux 5.14)")
	}
	if err := t.removeLeftovers(); err != nil {
		return nil, err
	}
	if err := enable(dir); err != nil {
		return nil, err
	}
	if err := control(t.apps); err != nil {
		return nil, err
	}
	usable := controllers(t.apps, "cgroup.subtree_control")
	t.bounds = Bounds{Memory: slices.Contains(usable, "memory"), Processes: slices.Contains(usable, "pids"), CPU: slices.Contains(usable, "cpu")}
	if t.bounds == (Bounds{}) {
		return nil, errors.New("its cgroup has no controllers for memory, processes and processors")
	}
	return t, t.reserve(dir)
}

// Bounds are the limits that the groups of t hold; none for nil.
func (t *Tree) Bounds() Bounds {
	if t == nil {
		return Bounds{}
	}
	return t.bounds
}

// Close lets another server take the group.
func (t *Tree) Close() error { return t.lock.Close() }

// lockGroup keeps a second server in the same group from ending the apps of the first.
func lockGroup(dir string) (*os.File, error) {
	lock, err := os.Open(dir) //nolint:gosec // the kernel said that it is ours
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(errors.New("another server uses its cgroup"), lock.Close())
	}
	return lock, nil
}

// enable moves all processes out of a group and gives its controllers to those below: the kernel allows
// one or the other.
func enable(dir string) (err error) {
	for range moveRounds {
		if err = move(dir, filepath.Join(dir, serverGroup)); err != nil {
			return fmt.Errorf("the server cannot be moved to a cgroup of its own: %w", err)
		}
		if err = control(dir); !errors.Is(err, syscall.EBUSY) {
			return err
		}
	}
	return errors.New("other processes keep starting in its cgroup")
}

// move moves all processes from one group to another.
func move(from, to string) error {
	pids, err := os.ReadFile(filepath.Join(from, procsFile)) //nolint:gosec // below the server's group
	if err != nil {
		return err
	}
	for _, pid := range strings.Fields(string(pids)) {
		if err := write(to, procsFile, pid); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// control gives those controllers of a group that the server uses to the groups below it.
func control(dir string) error {
	enabled := controllers(dir, "cgroup.subtree_control")
	for _, name := range controllers(dir, "cgroup.controllers") {
		if !slices.Contains([]string{"cpu", "memory", "pids"}, name) || slices.Contains(enabled, name) {
			continue
		}
		if err := write(dir, "cgroup.subtree_control", "+"+name); err != nil {
			return fmt.Errorf("the controller %s of its cgroup cannot be used: %w", name, err)
		}
	}
	return nil
}

func controllers(dir, file string) []string {
	names, _ := os.ReadFile(filepath.Join(dir, file)) //nolint:gosec // below the server's group
	return strings.Fields(string(names))
}

// reserve keeps the apps from using up the threads that the server itself may have.
func (t *Tree) reserve(dir string) error {
	if !t.bounds.Processes {
		return nil
	}
	return write(t.apps, "pids.max", strconv.FormatInt(LeaveTasks(min(number(dir, "pids.max"), HostTasks())), 10))
}

// removeLeftovers ends and removes the groups that a killed server left.
func (t *Tree) removeLeftovers() error {
	entries, err := os.ReadDir(t.apps)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		if err := (&Group{dir: filepath.Join(t.apps, entry.Name())}).Remove(); err != nil {
			return err
		}
	}
	return nil
}
