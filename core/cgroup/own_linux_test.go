package cgroup

import "testing"

// TestTheGroupOfAProcessIsFound has the files of a machine, of containers, and of machines that have no groups to use.
func TestTheGroupOfAProcessIsFound(t *testing.T) {
	for name, c := range map[string]struct{ mounts, groups, mount, dir string }{
		"a unit": {
			mounts: "25 24 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n", groups: "0::/system.slice/ropewalk.service\n",
			mount: "/sys/fs/cgroup", dir: "/sys/fs/cgroup/system.slice/ropewalk.service",
		},
		"a container with groups of its own": {
			mounts: "25 24 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", groups: "0::/\n", mount: "/sys/fs/cgroup", dir: "/sys/fs/cgroup",
		},
		"a container with the groups of the machine": {
			mounts: "25 24 0:22 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n", groups: "0::/docker/abc/x\n", mount: "/sys/fs/cgroup", dir: "/sys/fs/cgroup/x",
		},
		"both versions": {
			mounts: "1 2 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n25 24 0:22 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			groups: "2:memory:/a\n0::/b\n", mount: "/sys/fs/cgroup/unified", dir: "/sys/fs/cgroup/unified/b",
		},
		"another part of the machine": {mounts: "25 24 0:22 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n", groups: "0::/docker/abcd\n"},
		"outside of the namespace":    {mounts: "25 24 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", groups: "0::/../other\n"},
		"version 1 alone":             {mounts: "1 2 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", groups: "2:memory:/a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			mount, dir, err := locate(c.mounts, c.groups)
			if mount != c.mount || dir != c.dir || (err == nil) != (c.dir != "") {
				t.Errorf("%q, %q, %v", mount, dir, err)
			}
		})
	}
}
