package sandbox

import (
	"errors"
	"fmt"
	"os"
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
		// The shim writes its own identity mapping (mapOwnID). The server's memory is not dumpable, so as
		// long as the shim has it, the shim's files in /proc belong to root.
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

// Enter prepares the shim itself: its user ID mapping, its file tree, and the limits that its processes inherit.
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
		files = max(files, shimFiles) // the program may get a lower limit: see StartLimited
	}
	var signals unix.Rlimit // pending timers count as signals too
	if err := unix.Getrlimit(unix.RLIMIT_SIGPENDING, &signals); err != nil {
		return fmt.Errorf("read a resource limit: %w", err)
	}
	limits := map[int]uint64{
		unix.RLIMIT_CORE: noCore, unix.RLIMIT_SIGPENDING: max(signals.Max/userShare, 1), unix.RLIMIT_NICE: 0, unix.RLIMIT_RTPRIO: 0,
		unix.RLIMIT_LOCKS: mark,
	}
	if files > 0 {
		limits[unix.RLIMIT_NOFILE] = files
	}
	if p.Limits.FileSize > 0 {
		limits[unix.RLIMIT_FSIZE] = uint64(p.Limits.FileSize)
	}
	for resource, limit := range limits {
		if err := lower(resource, limit); err != nil {
			return fmt.Errorf("set a resource limit: %w", err)
		}
	}
	preferAsVictim()
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// noCore is the limit at which the kernel makes no core dump at all. At 0 it still makes one if kernel.core_pattern
// names a program, which it runs as root, outside of the sandbox (core(5)). The filter keeps an app from setting 0.
const noCore = 1

// victimScore makes the kernel end an app, not the server, if the machine has no memory left: much of the memory that
// the kernel holds for an app, such as socket buffers, is not attributed to it. The score makes it look as if the app
// used half of the memory.
const victimScore = 500

// preferAsVictim sets the score for this process and the processes that it starts, because they could inherit a lower
// one from the server. An app cannot change its score: /proc is read-only in a sandbox.
func preferAsVictim() {
	const file = "/proc/self/oom_score_adj"
	raw, err := os.ReadFile(file)
	if err != nil {
		return // the system has no such score
	}
	if now, err := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil && now < victimScore {
		_ = os.WriteFile(file, []byte(strconv.Itoa(victimScore)), 0)
	}
}

// userShare limits one app to 1/userShare of the resources that the kernel counts for the server's user.
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

// StartLimited calls fork, which starts the program, while this process has the limits that the program inherits. Limits
// that are set later miss a process that is being forked at that moment, and it passes the old ones on.
//
// The shim itself must not keep these limits: otherwise it would fail along with the program, and the reason would be
// lost. As it may not raise a hard limit again, it lowers the soft ones, and the filter keeps an app from changing them. It
// does so on a thread that is not in the sandbox.
func (p *Profile) StartLimited(fork func() error) (err error) {
	for resource, limit := range p.fixedLimits() {
		var own unix.Rlimit
		if err := unix.Getrlimit(resource, &own); err != nil {
			return err
		}
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: min(own.Cur, limit), Max: own.Max}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unix.Setrlimit(resource, &own)) }()
	}
	return fork()
}

// fixedLimits returns the soft limits of the program that the shim does not have.
func (p *Profile) fixedLimits() map[int]uint64 {
	limits := map[int]uint64{}
	if p.Limits.Tasks > 0 {
		limits[unix.RLIMIT_NPROC] = uint64(p.Limits.Tasks)
	}
	if p.Limits.OpenFiles > 0 && p.Limits.OpenFiles < shimFiles {
		limits[unix.RLIMIT_NOFILE] = uint64(p.Limits.OpenFiles)
	}
	return limits
}

// mark is the value of a limit that the kernel no longer uses (RLIMIT_LOCKS). Shims and everything that they start have
// it, and the filter keeps an app from changing it, so a server recognizes processes that an earlier one left behind.
const mark = 0x726f7065

// IsMarked reports whether a process is a shim with a sandbox, or was started by one.
func IsMarked(pid int) bool {
	var now unix.Rlimit
	return unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &now) == nil && now.Max == mark
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

// mapOwnID maps the user ID of an unprivileged server to itself, unless the server has already written a mapping.
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
