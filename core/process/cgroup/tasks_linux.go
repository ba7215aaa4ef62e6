package cgroup

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// SharedTasks returns how many threads and processes the server and its apps can have together, and the name of the limit:
// that of the server's user, its group or the machine.
func SharedTasks() (limit int64, name string) {
	limit, name = userTasks()
	mounts, err1 := os.ReadFile("/proc/self/mountinfo")
	groups, err2 := os.ReadFile("/proc/self/cgroup")
	if errors.Join(err1, err2) != nil {
		return limit, name
	}
	if own := ownTasks(string(mounts), string(groups)); own < limit {
		return own, "pids.max of the server's cgroup"
	}
	return limit, name
}

// userTasks returns how many threads and processes the server's user can have on this machine, and the name of the
// limit.
func userTasks() (limit int64, name string) {
	limit = math.MaxInt64
	for _, file := range []string{"pid_max", "threads-max"} {
		if n := number("/proc/sys/kernel", file); n > 0 && n < limit {
			limit, name = n, "kernel."+file
		}
	}
	var user unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &user); err == nil && !isMachinesRoot() && user.Cur < uint64(limit) {
		limit, name = int64(user.Cur), "ulimit -u"
	}
	return limit, name
}

// isMachinesRoot reports whether the server's user is root outside of all user namespaces, whose tasks are not limited.
func isMachinesRoot() bool {
	ids, err := os.ReadFile("/proc/self/uid_map")
	return os.Geteuid() == 0 && (err != nil || strings.Join(strings.Fields(string(ids)), " ") == "0 0 4294967295")
}

// ownTasks returns how many threads and processes the process's group can have, in either version of cgroups, taking
// into account the groups above it that this process can see.
func ownTasks(mountinfo, groups string) int64 {
	limit := int64(math.MaxInt64)
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 || parts[1] != "" && !slices.Contains(strings.Split(parts[1], ","), "pids") {
			continue
		}
		mount, root := pidsMount(mountinfo, parts[1] == "")
		if mount == "" {
			continue
		}
		for dir := filepath.Join(mount, strings.TrimPrefix(parts[2], strings.TrimSuffix(root, "/"))); ; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "pids.max")); !errors.Is(err, fs.ErrNotExist) {
				limit = min(limit, number(dir, "pids.max"))
			}
			if dir == mount || len(dir) < len(mount) {
				break
			}
		}
	}
	return limit
}

// pidsMount finds the mount point of the cgroups that count processes, and the group that is mounted there.
func pidsMount(mountinfo string, version2 bool) (mount, root string) {
	for line := range strings.Lines(mountinfo) {
		head, tail, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(head), strings.Fields(tail)
		if len(fields) < 5 || len(kind) < 3 {
			continue
		}
		if version2 && kind[0] == "cgroup2" || !version2 && kind[0] == "cgroup" && slices.Contains(strings.Split(kind[2], ","), "pids") {
			mount, root = fields[4], fields[3]
		}
	}
	return mount, root
}
