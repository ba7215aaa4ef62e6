package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// process is one process of this machine. Its start time tells it from another one with its id.
type process struct {
	id, parent int
	started    string // in clock ticks since boot
	command    string
}

func (p process) String() string {
	return fmt.Sprintf("%d (child of %d): %s\n", p.id, p.parent, p.command)
}

// census is every process that lives; a zombie has ended and only waits to be counted as ended.
func census() map[int]process {
	all := map[int]process{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		// "pid (name) state ppid …": the name may hold anything, so count from the last parenthesis.
		at := bytes.LastIndexByte(stat, ')')
		fields := strings.Fields(string(stat[at+1:]))
		if fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(fields[1])
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		all[id] = process{id, parent, fields[19], strings.ReplaceAll(strings.TrimRight(string(command), "\x00"), "\x00", " ")}
	}
	return all
}

// descendants are the children of a process, their children, and so on.
func descendants(of int) []process {
	all := census()
	var found []process
	for _, p := range all {
		for up := p.parent; up != 0; up = all[up].parent {
			if up == of {
				found = append(found, p)
				break
			}
		}
	}
	return found
}

// mentioning are the processes that run for a home, wherever they hang in the tree: they name it on
// their command line, work in it, or have it in their environment, as every bundle has.
func mentioning(home string) []process {
	var found []process
	for id, p := range census() {
		if id == os.Getpid() {
			continue
		}
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", id))
		dir, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", id))
		if strings.Contains(p.command, home) || strings.HasPrefix(dir, home) || bytes.Contains(environ, []byte(home)) {
			found = append(found, p)
		}
	}
	return found
}

// survivors are those of some processes that still live when a while has passed.
func survivors(of []process, within time.Duration) []process {
	var left []process
	eventually(within, func() bool {
		now := census()
		left = nil
		for _, p := range of {
			if now[p.id].started == p.started {
				left = append(left, p)
			}
		}
		return len(left) == 0
	})
	return left
}

// eventually asks until something holds or the time is up, and reports which.
func eventually(within time.Duration, holds func() bool) bool {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if holds() {
			return true
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return holds()
		}
	}
}
