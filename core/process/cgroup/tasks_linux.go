package cgroup

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// HostTasks returns how many threads and processes the whole machine can have.
func HostTasks() int64 {
	limit := int64(math.MaxInt64)
	for _, file := range []string{"pid_max", "threads-max"} {
		if n := number("/proc/sys/kernel", file); n > 0 {
			limit = min(limit, n)
		}
	}
	return limit
}

// OwnTasks returns how many threads and processes this process's group can have, in either version of cgroups,
// taking into account the groups above it that this process can see.
func OwnTasks() int64 {
	mounts, err1 := os.ReadFile("/proc/self/mountinfo")
	groups, err2 := os.ReadFile("/proc/self/cgroup")
	if errors.Join(err1, err2) != nil {
		return math.MaxInt64 // HostTasks is the limit
	}
	return ownTasks(string(mounts), string(groups))
}

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
