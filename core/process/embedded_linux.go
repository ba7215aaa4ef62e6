package process

import (
	"errors"
	"os"
	"os/exec"
	"sync"

	"golang.org/x/sys/unix"
)

// embeddedFD is the lowest descriptor of the embedded shim. A shim's own descriptors, which are lower, must not replace
// it between fork and exec.
const embeddedFD = 512

// shimProgram returns the command line that runs a shim: ropewalk-shim if it was embedded when this executable was
// built (see deploy/shim), or else this executable. The server keeps the embedded program in memory, so that all shims
// share its pages and nobody can replace it.
//
//nolint:gochecknoglobals // never changes
var shimProgram = sync.OnceValue(func() []string {
	if len(embeddedShim) == 0 {
		return selfShim()
	}
	path, err := loadProgram(embeddedShim)
	if err != nil {
		return selfShim()
	}
	return []string{path}
})

// loadProgram writes a program to memory, and executes it once, because a system may not allow that
// (vm.memfd_noexec, SELinux). The path it returns is valid in this process and, until it executes another program, in
// a child.
func loadProgram(program []byte) (path string, err error) {
	fd, err := unix.MemfdCreate(shimName, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3, every such file can be executed
		fd, err = unix.MemfdCreate(shimName, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return "", err
	}
	file := os.NewFile(uintptr(fd), shimName)
	defer func() { _ = file.Close() }()
	if err := file.Chmod(0o555); err != nil {
		return "", err
	}
	if _, err := file.Write(program); err != nil {
		return "", err
	}
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE); err != nil {
		return "", err
	}
	// The kernel does not execute a file that is open for writing.
	readable, err := os.OpenFile(descriptorPath(int(file.Fd()), ""), os.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = readable.Close() }()
	kept, err := unix.FcntlInt(readable.Fd(), unix.F_DUPFD_CLOEXEC, embeddedFD)
	if err != nil {
		return "", err
	}
	path = descriptorPath(kept, "")
	var usage *exec.ExitError
	if err := exec.Command(path).Run(); !errors.As(err, &usage) { //nolint:noctx // it prints its usage and ends
		return "", err
	}
	return path, nil
}
