package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// shortOfMemory is the percentage of the last ten seconds that processes must have waited for memory before it counts
// as short.
const shortOfMemory = 10

// MemoryIsShort reports whether processes have to wait for memory, on this machine or in the server's own
// group, according to the kernel's pressure stall information. It returns false if the kernel does not provide that.
func MemoryIsShort() bool {
	if stalled("/proc/pressure/memory") >= shortOfMemory {
		return true
	}
	dir, err := placeOfOwn()
	return err == nil && stalled(filepath.Join(dir, "memory.pressure")) >= shortOfMemory
}

// placeOfOwn returns the directory of the group that limits this process and the apps.
func placeOfOwn() (string, error) {
	_, dir, err := locateOwn()
	if filepath.Base(dir) == serverGroup {
		dir = filepath.Dir(dir)
	}
	return dir, err
}

// stalled reads from a pressure file the percentage of the last ten seconds in which some process had to wait. It
// returns 0 if the file does not contain it.
func stalled(path string) float64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "some" {
			continue
		}
		value, ok := strings.CutPrefix(fields[1], "avg10=")
		if percent, err := strconv.ParseFloat(value, 64); ok && err == nil {
			return percent
		}
	}
	return 0
}
