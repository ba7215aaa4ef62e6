package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/ropewalk/ropewalk/core/process/cgroup"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// Probe describes what the sandbox can do on this machine.
type Probe struct {
	Level  sandbox.Level // the highest level that works
	OwnUID bool          // each app can have its own user id, because the server is root
	Reason string        // why Level is not the highest; "" if it is
	Chroot bool          // the reason is that the server runs in a chroot
}

// probeArgs returns the arguments with which a shim exits immediately, or after one call that the broker makes on its
// behalf. The shim runs inside the sandbox that is tested.
func probeArgs(connects bool) []string {
	if connects {
		return []string{"probe", "connect"}
	}
	return []string{"probe"}
}

// probe connects a datagram socket, which sends nothing. A machine without a network has no route to the address
// (TEST-NET-1, RFC 5737), but probe ignores that error.
func probe(connects bool) int {
	if !connects {
		return 0
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err == nil {
		err = syscall.Connect(fd, &syscall.SockaddrInet4{Addr: [4]byte{192, 0, 2, 1}, Port: 9})
	}
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) {
		_, _ = fmt.Fprintln(os.Stderr, "a process may not look into its children:", err)
		return exitCannotExec
	}
	return 0
}

// ProbeSandbox finds out which sandbox level works by running a program in it. That takes about 20 ms.
func ProbeSandbox(ctx context.Context) Probe {
	level, reason := sandbox.Supported()
	p := Probe{Reason: reason}
	if level >= sandbox.LevelNamespaces {
		if os.Geteuid() == 0 && trySandbox(ctx, sandbox.LevelNamespaces, firstAppUID, true) == nil {
			return Probe{Level: sandbox.LevelNamespaces, OwnUID: true}
		}
		err := trySandbox(ctx, sandbox.LevelNamespaces, 0, true)
		if err == nil {
			return Probe{Level: sandbox.LevelNamespaces}
		}
		p.Reason, p.Chroot = withoutNamespaces(err, sandbox.InChroot())
		level = sandbox.LevelLandlock
	}
	if level >= sandbox.LevelLandlock {
		if os.Geteuid() == 0 && trySandbox(ctx, sandbox.LevelLandlock, firstAppUID, true) == nil {
			p.Level, p.OwnUID = sandbox.LevelLandlock, true
			return p
		}
		err := trySandbox(ctx, sandbox.LevelLandlock, 0, true)
		if err == nil {
			p.Level = sandbox.LevelLandlock
			return p
		}
		if trySandbox(ctx, sandbox.LevelLandlock, 0, false) == nil { // better than no sandbox
			p.Level, p.Reason = sandbox.LevelLandlock, "apps cannot connect to anything: "+err.Error()
			return p
		}
		p.Reason = "Landlock does not work: " + err.Error()
	}
	return p
}

// ProbeCgroup runs a program in a cgroup of the tree. It fails if a system call filter, such as that of some
// container runtimes, prevents creating processes in another cgroup.
func ProbeCgroup(ctx context.Context, tree *cgroup.Tree) error {
	c := Command{Path: selfPath(), Args: append([]string{ShimArg}, probeArgs(false)...), Cgroup: Cgroup{Tree: tree, Name: "probe"}}
	if err := runProbe(ctx, c); err != nil {
		return fmt.Errorf("cannot run a program in a cgroup below its own: %w", err)
	}
	return nil
}

// withoutNamespaces explains why a program in namespaces could not be started, and reports whether a chroot is
// the reason.
func withoutNamespaces(err error, inChroot bool) (reason string, chroot bool) {
	if !errors.Is(err, syscall.EPERM) {
		return "cannot create namespaces: " + err.Error(), false
	}
	if inChroot {
		return "the server runs in a chroot, where the kernel does not allow user namespaces", true
	}
	return "the kernel, or the container that the server runs in, does not allow user namespaces: " + syscall.EPERM.Error(), false
}

// trySandbox runs a program that exits immediately.
func trySandbox(ctx context.Context, level sandbox.Level, uid int, connects bool) error {
	dir, err := os.MkdirTemp("", "ropewalk-probe")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	exe = strings.TrimSuffix(exe, " (deleted)")
	c := Command{
		Path: exe, Args: append([]string{ShimArg}, probeArgs(connects)...), Dir: dir,
		Sandbox: &sandbox.Profile{Level: level, UID: uid, Read: append(sandbox.SystemPaths(), exe), Write: []string{dir}},
	}
	if uid != 0 && level < sandbox.LevelNamespaces {
		c.Sandbox.Group = AppsGroup
		if err := os.Chown(dir, uid, uid); err != nil {
			return err
		}
	}
	return runProbe(ctx, c)
}

// runProbe runs a program to completion.
func runProbe(ctx context.Context, c Command) error {
	p, err := Start(c)
	if err != nil {
		return err
	}
	defer func() { _ = p.Stdout().Close() }()
	select {
	case <-p.Done():
		return p.Err()
	case <-ctx.Done():
		p.Kill()
		return ctx.Err()
	}
}
