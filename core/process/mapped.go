package process

import (
	"fmt"
	"os"
	"syscall"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// OpenMapped opens a path as its own mount. In the mount, the owner's files belong to the user and group uid, and
// what that user writes belongs to the owner. It needs root, and a file system that supports ID-mapped mounts.
func OpenMapped(path string, uid int, write bool) (*os.File, error) {
	owner, err := sandbox.OwnerOf(path)
	if err != nil {
		return nil, err
	}
	users, err := mapping(owner, uid)
	if err != nil {
		return nil, fmt.Errorf("map the owner of %s: %w", path, err)
	}
	defer func() { _ = users.Close() }()
	return sandbox.OpenMapped(path, users, write)
}

// mapping returns a user namespace that maps owner's user and group ids to uid. The kernel creates a user namespace
// only for a process, so mapping starts one, stops it before its first instruction, and then kills it.
func mapping(owner sandbox.Owner, uid int) (*os.File, error) {
	cmd := shimCommand(probeArgs(false)...)
	cmd.SysProcAttr = mappingAttributes(owner, uid)
	err := children.start(func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
	if err != nil {
		return nil, err
	}
	users, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
	children.reaped(cmd.Process.Pid)
	return users, err
}
