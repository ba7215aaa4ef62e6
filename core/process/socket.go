package process

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/ropewalk/ropewalk/core/process/cgroup"
)

// The descriptors that a shim inherits.
const (
	socketFD  = 3 // its end of the shim socket
	programFD = 4 // the program, unless the shim opens it by its path
	killFD    = 5 // kills the cgroup, if any
	shimFD    = 6 // the shim's own program, if it was embedded
	mountFD   = 7 // the first of the mounts in Profile.Mapped
)

// shimSocket connects the server and one shim. The server writes "stop <nanoseconds>". The shim writes "started <pid>" or "failed <reason>", "denied <count> <kind> <target>" for each call
// to Command.Denied, and then "exited <status> [<signal>]". When the server's end closes for any reason, the shim ends
// its tree.
type shimSocket struct {
	server  *os.File
	shim    *os.File
	kill    *os.File // nil without a cgroup
	program *os.File // nil if the shim opens it by its path
	mounts  []*os.File
	profile []byte // the first line for the shim; nil for an unconfined program

	once sync.Once
	err  error
}

func newShimSocket(c Command, group *cgroup.Group) (*shimSocket, error) {
	server, shim, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("open the socket of a shim: %w", err)
	}
	s := &shimSocket{server: server, shim: shim}
	switch {
	case c.Verified != nil:
		s.program, err = c.Verified.open()
	case c.Path == selfPath() && !c.confined(): // this path leads a shim to the shim's own program
		s.program, err = os.Open(c.Path)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if group != nil {
		if s.kill, err = group.KillFile(); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func socketPair() (server, shim *os.File, err error) {
	syscall.ForkLock.RLock() // no child may inherit them between the two calls
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	if err := syscall.SetNonblock(fds[0], true); err != nil { // so that deadlines work
		return nil, nil, errors.Join(err, syscall.Close(fds[0]), syscall.Close(fds[1]))
	}
	return os.NewFile(uintptr(fds[0]), "shim socket, server side"), os.NewFile(uintptr(fds[1]), "shim socket, shim side"), nil
}

// extraFiles returns the shim's descriptors from socketFD on.
func (s *shimSocket) extraFiles() []*os.File {
	return append([]*os.File{s.shim, s.program, s.kill, shimProgram()}, s.mounts...)
}

// closeShimSide closes what only the shim needs. The server's end reads as closed as soon as no process holds
// the other end.
func (s *shimSocket) closeShimSide() {
	_ = s.shim.Close()
	if s.program != nil {
		_ = s.program.Close()
	}
	if s.kill != nil {
		_ = s.kill.Close()
	}
	for _, mount := range s.mounts {
		_ = mount.Close()
	}
}

// Close closes both ends, so the shim ends its tree.
func (s *shimSocket) Close() error {
	s.once.Do(func() {
		s.err = s.server.Close()
		s.closeShimSide()
	})
	return s.err
}
