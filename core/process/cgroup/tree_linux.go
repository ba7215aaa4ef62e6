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

// The groups below the server's group.
const (
	serverGroup = "server"
	appsGroup   = "apps"
)

// moveRounds is how many times to try to move all processes, because new ones may start in the meantime.
const moveRounds = 20

// Tree is the server's own group with the groups it creates.
type Tree struct {
	apps   string // the directory of the group with all apps
	lock   *os.File
	bounds Bounds
	made   atomic.Int64 // number of groups created
}

// Take prepares the server's group for subgroups and removes those that a killed server left behind. The error
// says why the server cannot have subgroups.
func Take() (*Tree, error) {
	dir, err := ownGroup()
	if err != nil {
		return nil, err
	}
	return take(dir)
}

// take does the work of Take, for a directory that is known to be a delegated group.
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
			return nil, fmt.Errorf("cannot create subgroups in the server's cgroup: %w", err)
		}
	}
	if _, err := os.Stat(filepath.Join(t.apps, killFile)); err != nil {
		return nil, errors.New("the kernel cannot kill a whole cgroup (needs Linux 5.14)")
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
		return nil, errors.New("the server's cgroup has no controllers for memory, processes or CPU")
	}
	return t, t.reserve(dir)
}

// Bounds returns the limits that the groups of t enforce; none for a nil tree.
func (t *Tree) Bounds() Bounds {
	if t == nil {
		return Bounds{}
	}
	return t.bounds
}

// Close allows another server to take the group.
func (t *Tree) Close() error { return t.lock.Close() }

// lockGroup locks a group, so that a second server in it cannot kill the first one's apps.
func lockGroup(dir string) (*os.File, error) {
	lock, err := os.Open(dir) //nolint:gosec // the kernel reported this directory as the server's own
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(errors.New("another server uses this server's cgroup"), lock.Close())
	}
	return lock, nil
}

// enable moves all processes out of a group and enables the group's controllers for its subgroups. The kernel does
// not allow processes and enabled controllers in one group.
func enable(dir string) (err error) {
	for range moveRounds {
		if err = move(dir, filepath.Join(dir, serverGroup)); err != nil {
			return fmt.Errorf("cannot move the server to a subgroup of its cgroup: %w", err)
		}
		if err = control(dir); !errors.Is(err, syscall.EBUSY) {
			return err
		}
	}
	return errors.New("other processes keep starting in the server's cgroup")
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

// control enables the controllers that the server uses for a group's subgroups.
func control(dir string) error {
	enabled := controllers(dir, "cgroup.subtree_control")
	for _, name := range controllers(dir, "cgroup.controllers") {
		if !slices.Contains([]string{"cpu", "memory", "pids"}, name) || slices.Contains(enabled, name) {
			continue
		}
		if err := write(dir, "cgroup.subtree_control", "+"+name); err != nil {
			return fmt.Errorf("cannot use the %s controller of the server's cgroup: %w", name, err)
		}
	}
	return nil
}

func controllers(dir, file string) []string {
	names, _ := os.ReadFile(filepath.Join(dir, file)) //nolint:gosec // below the server's group
	return strings.Fields(string(names))
}

// reserve limits the threads of all apps together, so that some are left for the server itself.
func (t *Tree) reserve(dir string) error {
	if !t.bounds.Processes {
		return nil
	}
	limit, _ := userTasks()
	return write(t.apps, "pids.max", strconv.FormatInt(LeaveTasks(min(number(dir, "pids.max"), limit)), 10))
}

// removeLeftovers ends and removes the groups that a killed server left behind.
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
