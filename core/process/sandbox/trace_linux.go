package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// errContinue is the answer to a call that the kernel makes itself. It must not be used for decisions, because the app can
// change the arguments in memory.
const errContinue = unix.Errno(0xfff)

const (
	maxPath   = unix.PathMax
	maxOpened = 2000 // paths that one app reports
)

// trace reports each file that the app opens, once for reading and once for writing.
type trace struct {
	mu     sync.Mutex
	opened map[string]bool // kind and path
}

func (t *trace) isNew(kind, path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.opened[kind+path] || len(t.opened) >= maxOpened {
		return false
	}
	t.opened[kind+path] = true
	return true
}

// traceOpens adds the calls that open a file by path.
func (b *Broker) traceOpens() {
	t := &trace{opened: map[string]bool{}}
	for number, flags := range openArguments() {
		b.calls[int32(number)] = func(n notification) error {
			path, err := openedPath(n, flags-1)
			if err != nil || !b.valid(n) {
				return errContinue
			}
			kind := "read"
			if n.args[flags]&(unix.O_WRONLY|unix.O_RDWR|unix.O_CREAT) != 0 {
				kind = "write"
			}
			if t.isNew(kind, path) && b.denials.report != nil {
				b.denials.report(kind, path, 1)
			}
			return errContinue
		}
	}
}

// openedPath returns the absolute path of an open call. argument is the position of its path. A directory descriptor
// precedes the path, if there is one.
func openedPath(n notification, argument uint32) (string, error) {
	at, size := uintptr(n.args[argument]), uintptr(os.Getpagesize())
	raw := make([]byte, maxPath)
	first := min(size-at%size, maxPath) // what follows may not be mapped
	local := []unix.Iovec{{Base: &raw[0], Len: maxPath}}
	remote := []unix.RemoteIovec{{Base: at, Len: int(first)}, {Base: at + first, Len: int(maxPath - first)}}
	length, err := unix.ProcessVMReadv(int(n.pid), local, remote, 0)
	if err != nil {
		return "", err
	}
	end := bytes.IndexByte(raw[:length], 0)
	if end <= 0 {
		return "", unix.EINVAL
	}
	path := string(raw[:end])
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	dir := fmt.Sprintf("/proc/%d/cwd", n.pid)
	if argument > 0 && int32(n.args[0]) != unix.AT_FDCWD {
		dir = fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(n.args[0]))
	}
	real, err := os.Readlink(dir)
	return filepath.Join(real, path), err
}
