package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// Protect keeps other processes of the same user from reading this one's memory, environment and
// descriptors, and from tracing it. There are no core dumps either. Root still may.
func Protect() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}
