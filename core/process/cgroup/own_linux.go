package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

var errNotDelegated = errors.New("the server's cgroup is not delegated to it (set Delegate= in the systemd unit, or use a container with a writable cgroup file system)")

// ownGroup returns the directory of the group that was delegated to this process. That is its own group, or the
// parent if an earlier server on this machine moved the process.
func ownGroup() (string, error) {
	mount, dir, err := locateOwn()
	if err != nil {
		return "", err
	}
	if filepath.Base(dir) == serverGroup && delegated(filepath.Dir(dir), mount) {
		return filepath.Dir(dir), nil
	}
	if !delegated(dir, mount) {
		return "", errNotDelegated
	}
	return dir, nil
}

// locateOwn calls locate for this process.
func locateOwn() (mount, dir string, err error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", "", err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", "", err
	}
	return locate(string(table), string(groups))
}

// locate finds the mount point of the cgroup file system, and the process's group in it, from the contents of
// /proc/self/mountinfo and /proc/self/cgroup.
func locate(mountinfo, groups string) (mount, dir string, err error) {
	var root string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		for i, field := range fields {
			if field == "-" && i > 5 && len(fields) > i+1 && fields[i+1] == "cgroup2" {
				root, mount = fields[3], fields[4]
			}
		}
	}
	if mount == "" {
		return "", "", errors.New("cgroup v2 is not mounted on this machine")
	}
	for line := range strings.Lines(groups) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		below, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/"))
		if !ok || strings.Contains(path, "/..") || below != "" && !strings.HasPrefix(below, "/") {
			return "", "", errors.New("the server's cgroup is outside the cgroup file system that the server can see")
		}
		return mount, filepath.Join(mount, below), nil
	}
	return "", "", errors.New("the server is not in a cgroup v2 group")
}

// delegated reports whether the manager of the machine's groups delegated the group dir to this process. systemd marks
// such groups. The root of a container's groups counts as well. The root of the machine's groups, which has no
// cgroup.type file, does not.
func delegated(dir, mount string) bool {
	for _, mark := range []string{"user.delegate", "trusted.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, mark, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	if dir == mount {
		_, err := os.Stat(filepath.Join(dir, "cgroup.type"))
		return err == nil
	}
	user := os.Geteuid()
	return user != 0 && owner(dir) == user && owner(filepath.Dir(dir)) != user
}

// owner returns the user id of a directory's owner, or -1 if it is unknown.
func owner(dir string) int {
	info, err := os.Stat(dir)
	if err != nil {
		return -1
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	return int(stat.Uid)
}
