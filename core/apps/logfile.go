package apps

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// An app's log takes four times logSize bytes of disk at most: the file and three older ones. (A
// log library is not used here because its rotation leaves a goroutine behind for each file.)
const (
	logSize = 10 << 20
	logKept = 3
)

// logFile is a file that is rotated when it is full. It is written by one goroutine.
type logFile struct {
	path string
	size int64 // of a full file, in bytes
	kept int   // older files

	file    *os.File
	written int64
}

func openLog(path string) (*logFile, error) {
	l := &logFile{path: path, size: logSize, kept: logKept}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return l, l.open()
}

func (l *logFile) open() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.written = f, info.Size()
	return nil
}

// Write rotates first when p does not fit. A disk that is full costs the log, not the app.
func (l *logFile) Write(p []byte) (int, error) {
	if l.written > 0 && l.written+int64(len(p)) > l.size {
		if err := l.rotate(); err != nil {
			return 0, err
		}
	}
	if l.file == nil {
		if err := l.open(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(p)
	l.written += int64(n)
	return n, err
}

// rotate renames path to path.1, path.1 to path.2 and so on; the oldest goes.
func (l *logFile) rotate() error {
	if err := l.Close(); err != nil {
		return err
	}
	for i := l.kept; i > 0; i-- {
		from := l.path
		if i > 1 {
			from = fmt.Sprintf("%s.%d", l.path, i-1)
		}
		if err := os.Rename(from, fmt.Sprintf("%s.%d", l.path, i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return l.open()
}

func (l *logFile) Close() error {
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return f.Close()
}
