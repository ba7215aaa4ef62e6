package sandbox

import (
	"fmt"
	"os"
	"strings"
)

// Supported returns the highest level that this kernel can provide, and the reason if there is a higher one. It does
// not try to create namespaces. Package process does so, by starting a shim in them.
func Supported() (Level, string) {
	if _, err := newProgram(); err != nil {
		return LevelNone, err.Error()
	}
	if version := landlockVersion(); version < landlockABI {
		return LevelNone, fmt.Sprintf("the kernel has Landlock version %d but version %d is needed (Linux 6.12, with landlock in its list of security modules)", version, landlockABI)
	}
	if limit, err := os.ReadFile("/proc/sys/user/max_user_namespaces"); err == nil && strings.TrimSpace(string(limit)) == "0" {
		return LevelLandlock, "user namespaces are turned off (user.max_user_namespaces is 0)"
	}
	return LevelNamespaces, ""
}

// InChroot reports whether the root directory of this process was set by chroot, in which case there is no
// mount at "/". The kernel does not allow such a process to create user namespaces (user_namespaces(7)). A
// chroot into a directory that is itself a mount is not recognized.
func InChroot() bool {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	return err == nil && !hasRootMount(string(mounts))
}

// hasRootMount looks for a mount at "/" in the contents of /proc/self/mountinfo (proc_pid_mountinfo(5)). Its
// fifth field is the mount point as the process sees it.
func hasRootMount(mountinfo string) bool {
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == "/" {
			return true
		}
	}
	return false
}
