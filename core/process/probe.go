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

// Probe is what the sandbox of this machine can do.
type Probe struct {
	Level  sandbox.Level // the highest that works
	OwnUID bool          // each app can have a user id of its own: the server is root
	Reason string        // why Level is not the highest; "" when it is
	Chroot bool          // the reason is that the server runs in a chroot
}

// probeArg makes a shim end at once. It runs inside the sandbox that is tried.
const probeArg = "probe"

// ProbeSandbox finds out which sandbox works by running a program in it. It takes some 20 ms.
func ProbeSandbox(ctx context.Context) Probe {
	level, reason := sandbox.Supported()
	p := Probe{Reason: reason}
	if level >= sandbox.LevelNamespaces {
		if os.Geteuid() == 0 && trySandbox(ctx, sandbox.LevelNamespaces, firstAppUID) == nil {
			return Probe{Level: sandbox.LevelNamespaces, OwnUID: true}
		}
		err := trySandbox(ctx, sandbox.LevelNamespaces, 0)
		if err == nil {
			return Probe{Level: sandbox.LevelNamespaces}
		}
		p.Reason, p.Chroot = withoutNamespaces(err, sandbox.InChroot())
		level = sandbox.LevelLandlock
	}
	if level >= sandbox.LevelLandlock {
		if os.Geteuid() == 0 && trySandbox(ctx, sandbox.LevelLandlock, firstAppUID) == nil {
			p.Level, p.OwnUID = sandbox.LevelLandlock, true
			return p
		}
		err := trySandbox(ctx, sandbox.LevelLandlock, 0)
		if err == nil {
			p.Level = sandbox.LevelLandlock
			return p
		}
		p.Reason = "Landlock does not work: " + err.Error()
	}
	return p
}

// ProbeCgroup runs a program in a cgroup of the tree. It does not work where a filter of system calls keeps
// processes from being made in another cgroup, as some of containers do.
func ProbeCgroup(ctx context.Context, tree *cgroup.Tree) error {
	c := Command{Path: selfPath(), Args: []string{ShimArg, probeArg}, Cgroup: Cgroup{Tree: tree, Name: "probe"}}
	if err := runProbe(ctx, c); err != nil {
		return fmt.Errorf("a program cannot be run in a cgroup below its own: %w", err)
	}
	return nil
}

// withoutNamespaces says why a program in namespaces could not be started, and whether that is because of a chroot.
func withoutNamespaces(err error, inChroot bool) (reason string, chroot bool) {
	if !errors.Is(err, syscall.EPERM) {
		return "namespaces cannot be made: " + err.Error(), false
	}
	if inChroot {
		return "the server runs in a chroot, where the kernel makes no user namespaces", true
	}
	return "the kernel, or the container that the server runs in, allows no user namespaces: " + syscall.EPERM.Error(), false
}

// trySandbox runs a program that ends at once.
func trySandbox(ctx context.Context, level sandbox.Level, uid int) error {
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
		Path: exe, Args: []string{ShimArg, probeArg}, Dir: dir,
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

// runProbe runs a program to its end.
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
