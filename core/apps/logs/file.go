package logs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// An app's logs take up at most four times MaxFileSize bytes on disk: the current file and MaxOlder older ones. This
// package does not use a log rotation library because those leave a goroutine running per file.
const (
	MaxFileSize = 10 << 20
	MaxOlder    = 3
)

// File is a log file that is rotated when it is full. It supports a single writer.
type File struct {
	path     string
	maxSize  int64
	maxOlder int

	file    *os.File
	written int64
}

// OpenFile opens the log file at path for appending. It creates the directory if necessary.
func OpenFile(path string) (*File, error) {
	f := &File{path: path, maxSize: MaxFileSize, maxOlder: MaxOlder}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return f, f.open()
}

func (f *File) open() error {
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.file, f.written = file, info.Size()
	return nil
}

// Write appends p to the file. If p does not fit, it rotates the file first.
func (f *File) Write(p []byte) (int, error) {
	if f.written > 0 && f.written+int64(len(p)) > f.maxSize {
		if err := f.rotate(); err != nil {
			return 0, err
		}
	}
	if f.file == nil {
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	n, err := f.file.Write(p)
	f.written += int64(n)
	return n, err
}

// rotate renames path to path.1, path.1 to path.2 and so on, and drops the oldest file.
func (f *File) rotate() error {
	if err := f.Close(); err != nil {
		return err
	}
	for i := f.maxOlder; i > 0; i-- {
		from := f.path
		if i > 1 {
			from = fmt.Sprintf("%s.%d", f.path, i-1)
		}
		if err := os.Rename(from, fmt.Sprintf("%s.%d", f.path, i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return f.open()
}

// Close closes the file. A later Write opens it again.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	file := f.file
	f.file = nil
	return file.Close()
}
