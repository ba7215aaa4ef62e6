package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Attributes sets attr so that a shim starts in its own namespaces, and records the server's user in p. The
// server calls it.
func (p *Profile) Attributes(attr *syscall.SysProcAttr) {
	p.Owner = Owner{UID: os.Geteuid(), GID: os.Getegid()}
	if p.Level < LevelNamespaces {
		return
	}
	attr.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC
	if os.Geteuid() != 0 {
		// The shim writes its own identity mapping (mapOwnID). Its files in /proc belong to root while it has
		// the server's memory, which is not dumpable.
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_PTRACE, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE}
		return
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
	if p.UID != 0 {
		attr.UidMappings = append(attr.UidMappings, syscall.SysProcIDMap{ContainerID: p.UID, HostID: p.UID, Size: 1})
	}
	attr.GidMappings = attr.UidMappings
	attr.GidMappingsEnableSetgroups = true
}

// Enter prepares the shim itself: its user id mapping, the file tree, and the limits that processes inherit.
func (p *Profile) Enter() error {
	if p.Level >= LevelNamespaces {
		if err := p.mapOwnID(); err != nil {
			return err
		}
		conf, _ := os.ReadFile(resolvConf)
		p.nameServers = nameServersOf(string(conf))
		if err := p.buildRoot(); err != nil {
			return err
		}
		shareWatches()
	}
	files := uint64(p.Limits.OpenFiles)
	if files > 0 {
		files = max(files, shimFiles) // LimitProgram sets a lower limit
	}
	var signals unix.Rlimit // timers count as well
	if err := unix.Getrlimit(unix.RLIMIT_SIGPENDING, &signals); err != nil {
		return fmt.Errorf("read a resource limit: %w", err)
	}
	for resource, limit := range map[int]uint64{
		unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: files, unix.RLIMIT_FSIZE: uint64(p.Limits.FileSize), unix.RLIMIT_SIGPENDING: signals.Max / userShare,
	} {
		if limit == 0 && resource != unix.RLIMIT_CORE {
			continue
		}
		if err := lower(resource, limit); err != nil {
			return fmt.Errorf("set a resource limit: %w", err)
		}
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// userShare is the fraction that one app may have of what the kernel counts for the server's user: one in
// userShare.
const userShare = 4

// shareWatches limits the inotify instances and watches of the user namespace, if the kernel supports it. The
// kernel also counts them for the server's user, so without this one app could leave none for the others.
func shareWatches() {
	for _, name := range []string{"instances", "watches"} {
		raw, err := os.ReadFile("/proc/sys/fs/inotify/max_user_" + name)
		if err != nil {
			continue
		}
		if all, err := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil {
			_ = os.WriteFile("/proc/sys/user/max_inotify_"+name, []byte(strconv.Itoa(max(all/userShare, 1))), 0)
		}
	}
}

// LimitProgram sets limits for one of the app's processes that the shim itself does not have: it would fail
// along with the program, and the reason would be lost. The calling goroutine gets the app's privileges, and
// its thread ends with it.
func (p *Profile) LimitProgram(pid int) error {
	runtime.LockOSThread()
	if err := dropRights(p.UID, p.Group); err != nil { // the kernel requires nothing else for limiting a process of that user
		return err
	}
	for resource, limit := range map[int]int{unix.RLIMIT_NPROC: p.Limits.Tasks, unix.RLIMIT_NOFILE: p.Limits.OpenFiles} {
		if limit == 0 {
			continue
		}
		var now unix.Rlimit
		if err := unix.Prlimit(pid, resource, nil, &now); err != nil {
			return err
		}
		n := min(uint64(limit), now.Max)
		if now.Cur == n && now.Max == n {
			continue
		}
		if err := unix.Prlimit(pid, resource, &unix.Rlimit{Cur: min(now.Cur, n), Max: n}, nil); err != nil {
			return err
		}
	}
	return nil
}

// lower sets a limit, or keeps the current one if that is lower.
func lower(resource int, limit uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return err
	}
	limit = min(limit, now.Max)
	return unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit})
}

// mapOwnID maps the user of an unprivileged server to itself, unless the server has written a mapping.
func (p *Profile) mapOwnID() error {
	if written, err := os.ReadFile("/proc/self/uid_map"); err == nil && len(written) > 0 {
		return nil
	}
	for _, file := range []struct{ path, content string }{
		{"/proc/self/setgroups", "deny"},
		{"/proc/self/uid_map", fmt.Sprintf("%d %d 1", p.Owner.UID, p.Owner.UID)},
		{"/proc/self/gid_map", fmt.Sprintf("%d %d 1", p.Owner.GID, p.Owner.GID)},
	} {
		if err := os.WriteFile(file.path, []byte(file.content), 0); err != nil {
			return fmt.Errorf("map the user id: %w", err)
		}
	}
	return nil
}
