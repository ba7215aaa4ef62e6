package process

import (
	"errors"
	"os"
	"os/exec"
	"sync"

	"golang.org/x/sys/unix"
)

// shimProgram returns ropewalk-shim if it was embedded when this executable was built (see deploy/shim), or nil if this
// executable is also the shim. The server keeps the embedded program in memory, so that all shims share its pages and
// nobody can replace it.
//
//nolint:gochecknoglobals // never changes
var shimProgram = sync.OnceValue(func() *os.File {
	if len(embeddedShim) == 0 {
		return nil
	}
	program, err := loadProgram(embeddedShim)
	if err != nil {
		return nil
	}
	// A system may not allow executing a file in memory (vm.memfd_noexec, SELinux).
	cmd := exec.Command(descriptorPath(socketFD, ""))
	cmd.Env, cmd.ExtraFiles = []string{}, []*os.File{program}
	var usage *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &usage) || usage.ExitCode() != exitUsage {
		_ = program.Close()
		return nil
	}
	return program
})

// loadProgram writes a program to a file in memory that can be executed and cannot be changed.
func loadProgram(program []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(shimName, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3, every such file can be executed
		fd, err = unix.MemfdCreate(shimName, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), shimName)
	defer func() { _ = file.Close() }()
	if err := file.Chmod(0o555); err != nil {
		return nil, err
	}
	if _, err := file.Write(program); err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE); err != nil {
		return nil, err
	}
	// The kernel does not execute a file that is open for writing.
	return os.Open(descriptorPath(int(file.Fd()), ""))
}
