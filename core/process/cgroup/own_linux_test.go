package cgroup

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// The test data is from a machine, from containers, and from machines without usable groups.
func TestTheGroupOfAProcessIsFound(t *testing.T) {
	for name, c := range map[string]struct{ mounts, groups, mount, dir string }{
		"a systemd unit": {
			mounts: "25 24 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n", groups: "0::/system.slice/ropewalk.service\n",
			mount: "/sys/fs/cgroup", dir: "/sys/fs/cgroup/system.slice/ropewalk.service",
		},
		"a container with its own groups": {
			mounts: "25 24 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", groups: "0::/\n", mount: "/sys/fs/cgroup", dir: "/sys/fs/cgroup",
		},
		"a container with the machine's groups": {
			mounts: "25 24 0:22 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n", groups: "0::/docker/abc/x\n", mount: "/sys/fs/cgroup", dir: "/sys/fs/cgroup/x",
		},
		"both cgroup versions": {
			mounts: "1 2 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n25 24 0:22 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			groups: "2:memory:/a\n0::/b\n", mount: "/sys/fs/cgroup/unified", dir: "/sys/fs/cgroup/unified/b",
		},
		"a mount of another group":      {mounts: "25 24 0:22 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n", groups: "0::/docker/abcd\n"},
		"a group outside the namespace": {mounts: "25 24 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", groups: "0::/../other\n"},
		"version 1 only":                {mounts: "1 2 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", groups: "2:memory:/a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			mount, dir, err := locate(c.mounts, c.groups)
			if mount != c.mount || dir != c.dir || (err == nil) != (c.dir != "") {
				t.Errorf("%q, %q, %v", mount, dir, err)
			}
		})
	}
}

func TestAGroupsTaskLimitIsTheLowestOneAboveIt(t *testing.T) {
	dir := t.TempDir()
	put := func(path, limit string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "pids.max"), []byte(limit+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("v1/docker", "900")
	put("v1/docker/c1", "max")
	put("v2/system.slice", "4915")
	put("v2/system.slice/one.service", "max")
	put("v2/container", "300")
	mount := func(place, root, kind, options string) string {
		return "30 20 0:26 " + root + " " + filepath.Join(dir, place) + " rw - " + kind + " cgroup " + options + "\n"
	}
	v1, v2 := mount("v1", "/", "cgroup", "rw,pids"), mount("v2", "/", "cgroup2", "rw")
	for name, c := range map[string]struct {
		mounts, groups string
		want           int64
	}{
		"version 1":             {v1 + mount("cpu", "/", "cgroup", "rw,cpu"), "4:pids:/docker/c1\n3:cpu:/x\n0::/\n", 900},
		"version 2":             {v2, "0::/system.slice/one.service\n", 4915},
		"both":                  {v1 + v2, "4:pids:/docker/c1\n0::/container\n", 300},
		"the root of a mount":   {mount("v2/container", "/docker/abc", "cgroup2", "rw"), "0::/docker/abc\n", 300},
		"none":                  {"", "0::/\n", math.MaxInt64},
		"a group without files": {v2, "0::/elsewhere\n", math.MaxInt64},
	} {
		if got := ownTasks(c.mounts, c.groups); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
