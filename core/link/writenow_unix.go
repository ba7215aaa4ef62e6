//go:build unix

package link

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// nowWriter writes what a pipe takes without waiting. One at a time may use it.
type nowWriter struct {
	raw  syscall.RawConn
	data []byte
	n    int
	do   func(fd uintptr) bool // made once
}

func newNowWriter(raw syscall.RawConn) *nowWriter {
	w := &nowWriter{raw: raw}
	w.do = func(fd uintptr) bool {
		if n, err := unix.Write(int(fd), w.data); err == nil {
			w.n = n
		}
		return true
	}
	return w
}

// write returns how much was taken. An error is the next one's to find.
func (w *nowWriter) write(data []byte) int {
	w.data, w.n = data, 0
	err := w.raw.Write(w.do)
	w.data = nil
	if err != nil {
		return 0
	}
	return w.n
}
