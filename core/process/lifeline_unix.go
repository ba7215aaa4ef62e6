//go:build unix

package process

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
)

// The descriptors a shim is born with.
const (
	lineFD     = 3 // its end of the life line
	verifiedFD = 4 // the verified executable, when there is one
)

// lifeLine is the socket between the server and one shim. The server writes "stop <nanoseconds>";
// the shim writes "started <pid>" or "failed <reason>", then "exited <status> [<signal>]". When the
// server's end closes, for whatever reason, the shim ends its tree.
type lifeLine struct {
	ours     *os.File
	theirs   *os.File
	verified *os.File // nil unless the program is a verified one

	once sync.Once
	err  error
}

func newLifeLine(v *Verified) (*lifeLine, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("open a life line: %w", err)
	}
	l := &lifeLine{ours: ours, theirs: theirs}
	if v != nil {
		if l.verified, err = v.open(); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

func socketPair() (ours, theirs *os.File, err error) {
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
	return os.NewFile(uintptr(fds[0]), "life line"), os.NewFile(uintptr(fds[1]), "life line of the shim"), nil
}

// extraFiles are the shim's descriptors from lineFD on.
func (l *lifeLine) extraFiles() []*os.File {
	if l.verified != nil {
		return []*os.File{l.theirs, l.verified}
	}
	return []*os.File{l.theirs}
}

// started closes what only the shim needs now. A line whose other end nobody holds any more reads
// as ended at once.
func (l *lifeLine) started() {
	_ = l.theirs.Close()
	if l.verified != nil {
		_ = l.verified.Close()
	}
}

// Close cuts the line: the shim ends its tree.
func (l *lifeLine) Close() error {
	l.once.Do(func() {
		l.err = l.ours.Close()
		l.started()
	})
	return l.err
}
