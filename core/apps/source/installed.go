package source

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// maxInstalled bounds the files of packages that the server itself reads, in bytes.
const maxInstalled = 4 << 20

// readInstalled reads a file below a directory that a package manager has filled. A package may have made what lies
// there: nothing outside of the directory is read, and nothing but regular files.
func readInstalled(dir, name string) (raw []byte, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe would wait for a writer
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxInstalled {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", name, maxInstalled)
	}
	return io.ReadAll(io.LimitReader(file, maxInstalled))
}
