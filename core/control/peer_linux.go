package control

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

func socketPeer(fd int) (peer, error) {
	p, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return peer{}, os.NewSyscallError("getsockopt", err)
	}
	return peer{uid: int(p.Uid), pid: int(p.Pid)}, nil
}

// parentOf returns the process that started or adopted another one.
func parentOf(pid int) (int, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(") ")) // a program chooses its own name
	fields := bytes.Fields(rest)
	if !found || len(fields) < 2 {
		return 0, fmt.Errorf("/proc/%d/stat cannot be read", pid)
	}
	return strconv.Atoi(string(fields[1]))
}

// descriptorPath returns a short path to an open directory.
func descriptorPath(dir *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", dir.Fd()) }
