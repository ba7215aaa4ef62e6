package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"

	"golang.org/x/sys/unix"
)

// openShim returns ropewalk-shim if it was embedded when this executable was built (see deploy/shim), or nil if this
// executable is also the shim. The server keeps the embedded program in memory, so that all shims share its pages and
// nobody can replace it.
//
//nolint:gochecknoglobals // never changes
var openShim = sync.OnceValues(func() (*os.File, error) { return loadShim(embeddedShim) })

func loadShim(embedded []byte) (*os.File, error) {
	if len(embedded) == 0 {
		return nil, nil //nolint:nilnil // see openShim
	}
	program, err := loadProgram(embedded)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.Background(), descriptorPath(socketFD, ""))
	cmd.Env, cmd.ExtraFiles = []string{}, []*os.File{program}
	err = cmd.Run()
	if usage, ok := errors.AsType[*exec.ExitError](err); !ok || usage.ExitCode() != exitUsage {
		return nil, errors.Join(errors.New("a test run of it failed"), err, program.Close())
	}
	return program, nil
}

func shimProgram() *os.File {
	program, _ := openShim()
	return program
}

// ShimError returns why ropewalk-shim cannot be executed although it was embedded, and this executable is the shim
// instead. Mostly, the system does not allow executing a file in memory (vm.memfd_noexec, SELinux).
func ShimError() error {
	_, err := openShim()
	return err
}

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
