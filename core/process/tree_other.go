//go:build unix && !linux

package process

import (
	"os"
	"syscall"

	"github.com/ropewalk/ropewalk/core/process/cgroup"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// reaper is false: only on Linux do orphaned descendants become children of the shim.
const reaper = false

const openNonblock = syscall.O_NONBLOCK

func selfPath() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// shimProgram returns nil: this executable is also the shim.
func shimProgram() *os.File { return nil }

// ShimError always returns nil.
func ShimError() error { return nil }

func descriptorPath(_ int, path string) string { return path }

func duplicate(from, to int) error { return syscall.Dup2(from, to) }

func closeOnExec() { syscall.CloseOnExec(socketFD) }

func becomeReaper() {}

func (*shim) childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// signalTree signals the program's process group.
func signalTree(child int, sig syscall.Signal) { _ = syscall.Kill(-child, sig) }

// Adopt does nothing: only Linux lets a process adopt its orphaned descendants.
func Adopt() {}

//nolint:gochecknoglobals // the counterpart of the set on Linux
var children shims

// shims is empty: nothing is swept on this system.
type shims struct{}

func (shims) start(fork func() (pid int, err error)) error {
	_, err := fork()
	return err
}

func (shims) reaped(int) {}

func sweepOrphans() {}

// EndLeftovers does nothing: only Linux has a sandbox that marks processes.
func EndLeftovers() (ended int) { return 0 }

func childOf(int, int) int { return 0 }

func below(int) []int { return nil }

func descendants(int, []proc) []proc { return nil }

func processes() []proc { return nil }

// Activity always returns false: only Linux exposes it.
func (*Process) Activity() (Activity, bool) { return Activity{}, false }

// Busy always returns false: only Linux exposes it.
func (*Process) Busy() bool { return false }

type proc struct {
	pid, parent int
	zombie      bool
}

// Protect does nothing on this system.
func Protect() error { return nil }

// killOrphans always returns false: orphans are not children of the shim on this system.
func killOrphans() bool { return false }

// share exists only on Linux.
type share struct{ tasks int }

func (shims) grant(*sandbox.Profile, *cgroup.Group) (*share, error) { return &share{}, nil }

func (shims) release(*share) {}

func mappingAttributes(sandbox.Owner, int) *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
