package files

import (
	"errors"
	"io/fs"
	"os"
)

// incompleteMark is a file beside the directory of a bundle. While it exists, the directory is being
// filled or is complete only until the machine restarts: the file then contains the boot id.
func incompleteMark(dir string) string { return dir + ".unready" }

// isComplete reports whether a directory that exists contains the whole bundle.
func isComplete(dir string) bool {
	mark, err := os.ReadFile(incompleteMark(dir))
	return errors.Is(err, fs.ErrNotExist) || err == nil && len(mark) > 0 && string(mark) == bootID()
}

// bootID identifies this boot of the machine, "" where the system has no such id.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(id)
}
