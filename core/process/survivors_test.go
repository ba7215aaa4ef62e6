//go:build linux

package process_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// newMark returns a word that identifies this test's processes by their arguments.
func newMark(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("mark-%d-%s", os.Getpid(), filepath.Base(t.TempDir())+strconv.FormatInt(time.Now().UnixNano(), 36))
}

// survivors returns the processes with the mark, as "pid: command line". Zombies are not included.
func survivors(mark string) []string {
	var found []string
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		line, err := os.ReadFile(path)
		pid := filepath.Base(filepath.Dir(path))
		if err == nil && bytes.Contains(line, []byte(mark)) && pid != strconv.Itoa(os.Getpid()) {
			found = append(found, pid+": "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// zombies returns child processes of this process that have ended and were not waited for.
func zombies() []string {
	var found []string
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
		if fields[0] == "Z" && fields[1] == strconv.Itoa(os.Getpid()) {
			found = append(found, string(raw))
		}
	}
	return found
}

// testTimeout is longer than the required second, because other tests run on the same machine.
const testTimeout = 30 * time.Second

// soon waits until no process has the mark.
func soon(mark string) (left []string, took time.Duration) {
	began := time.Now()
	for {
		left, took = survivors(mark), time.Since(began)
		if len(left) == 0 || took > testTimeout {
			return left, took
		}
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill %d: %v", pid, err)
	}
}
