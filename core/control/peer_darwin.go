package control

import (
	"os"

	"golang.org/x/sys/unix"
)

func socketPeer(fd int) (peer, error) {
	user, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return peer{}, os.NewSyscallError("getsockopt", err)
	}
	pid, err := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	return peer{uid: int(user.Uid), pid: pid}, os.NewSyscallError("getsockopt", err)
}

// parentOf returns the process that started or adopted another one.
func parentOf(pid int) (int, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0, os.NewSyscallError("sysctl", err)
	}
	return int(info.Eproc.Ppid), nil
}

// descriptorPath returns "": macOS has no path that refers to an open directory.
func descriptorPath(*os.File) string { return "" }
