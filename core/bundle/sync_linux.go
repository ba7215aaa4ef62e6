package bundle

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncTree syncs the file system that contains dir. This takes one call, whereas syncing each file of a bundle with
// 5,000 small files would take 5,000.
func syncTree(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return unix.Syncfs(int(d.Fd()))
}

// syncDir makes a rename in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return d.Sync()
}
