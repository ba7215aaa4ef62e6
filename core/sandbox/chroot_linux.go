package sandbox

import (
	"os"
	"strings"
)

// InChroot reports whether the root directory of this process was set by chroot: no mount is at "/" then. The kernel
// lets such a process make no user namespaces (user_namespaces(7)). A chroot into a directory that is itself a mount
// is not recognized.
func InChroot() bool {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	return err == nil && !hasRootMount(string(mounts))
}

// hasRootMount looks for a mount at "/" in the text of /proc/self/mountinfo (proc_pid_mountinfo(5)), whose fifth field
// is the mount point as the process sees it.
func hasRootMount(mountinfo string) bool {
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == "/" {
			return true
		}
	}
	return false
}
