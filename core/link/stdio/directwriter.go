package stdio

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// directWriter writes what a pipe takes without waiting. It is for one goroutine at a time.
type directWriter struct {
	raw  syscall.RawConn
	data []byte
	n    int
	do   func(fd uintptr) bool // one closure for all writes
}

func newDirectWriter(raw syscall.RawConn) *directWriter {
	w := &directWriter{raw: raw}
	w.do = func(fd uintptr) bool {
		if n, err := unix.Write(int(fd), w.data); err == nil {
			w.n = n
		}
		return true
	}
	return w
}

// write returns how many bytes were written. An error is found by the next ordinary write.
func (w *directWriter) write(data []byte) int {
	w.data, w.n = data, 0
	err := w.raw.Write(w.do)
	w.data = nil
	if err != nil {
		return 0
	}
	return w.n
}
