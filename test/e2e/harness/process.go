package harness

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

	"github.com/ropewalk/ropewalk/internal/testkit"
)

// Process is a process on this machine. The start time distinguishes it from a later process with the same ID.
type Process struct {
	ID, Parent int
	started    string // in clock ticks since boot
	Command    string
}

func (p Process) String() string {
	return fmt.Sprintf("%d (child of %d): %s\n", p.ID, p.Parent, p.Command)
}

// RunningProcesses returns every running process by ID, except zombies.
func RunningProcesses() map[int]Process {
	all := map[int]Process{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // the process has exited in the meantime
		}
		// The format is "pid (name) state ppid …". The name may contain anything, so find the last parenthesis.
		at := bytes.LastIndexByte(stat, ')')
		fields := strings.Fields(string(stat[at+1:]))
		if fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(fields[1])
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		all[id] = Process{id, parent, fields[19], strings.ReplaceAll(strings.TrimRight(string(command), "\x00"), "\x00", " ")}
	}
	return all
}

// Descendants returns the children of a process, their children, and so on.
func Descendants(of int) []Process {
	all := RunningProcesses()
	var found []Process
	for _, p := range all {
		for up := p.Parent; up != 0; up = all[up].Parent {
			if up == of {
				found = append(found, p)
				break
			}
		}
	}
	return found
}

// ProcessesFor returns the processes that belong to a home, wherever they are in the process tree. The command line,
// working directory or environment of such a process contains the home.
func ProcessesFor(home string) []Process {
	var found []Process
	for id, p := range RunningProcesses() {
		if id == os.Getpid() {
			continue
		}
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", id))
		dir, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", id))
		if strings.Contains(p.Command, home) || strings.HasPrefix(dir, home) || bytes.Contains(environ, []byte(home)) {
			found = append(found, p)
		}
	}
	return found
}

// Survivors waits for the given time and returns the processes that are still running. It returns earlier if all have
// exited.
func Survivors(of []Process, within time.Duration) []Process {
	var left []Process
	testkit.Within(within, func() bool {
		now := RunningProcesses()
		left = nil
		for _, p := range of {
			if now[p.ID].started == p.started {
				left = append(left, p)
			}
		}
		return len(left) == 0
	})
	return left
}

// PID returns the process ID of a Go bundle outside its sandbox. Inside the sandbox, the process has a different ID.
func (s *Server) PID(t *testing.T, app string) int {
	t.Helper()
	inside := s.Call(t, app, "environment", nil).(map[string]any)
	id := strconv.Itoa(int(inside["pid"].(float64)))
	for _, p := range Descendants(s.Cmd.Process.Pid) {
		dir := "/proc/" + strconv.Itoa(p.ID)
		environ, _ := os.ReadFile(dir + "/environ")
		status, _ := os.ReadFile(dir + "/status")
		_, ids, _ := strings.Cut(string(status), "NSpid:")
		ids, _, _ = strings.Cut(ids, "\n")
		if all := strings.Fields(ids); len(all) > 0 && all[len(all)-1] == id && strings.Contains(string(environ), "/apps/"+app+"/data") {
			return p.ID
		}
	}
	t.Fatalf("no process of %s has the id %s", app, id)
	return 0
}

// KillProcess sends SIGKILL to a process.
func KillProcess(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
