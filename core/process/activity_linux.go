package process

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// Activity returns the processor time, the processes and the connections of the program and its descendants. ok is
// false if the system does not expose them.
func (p *Process) Activity() (a Activity, ok bool) {
	meter := new(sandbox.Meter)
	for _, pid := range below(p.cmd.Process.Pid) {
		u, zombieOf, ok := meter.Usage(pid)
		if !ok || zombieOf != 0 {
			continue
		}
		a.CPUTime += u.CPUTime
		a.Processes = append(a.Processes, pid)
		open, err := hasConnections(pid)
		if err != nil {
			return Activity{}, false
		}
		a.Connected = a.Connected || open
	}
	return a, len(a.Processes) > 0
}

// hasConnections reports whether a process holds a TCP or UDP socket. It returns false for a process that has
// ended.
func hasConnections(pid int) (bool, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	names, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return false, unlessEnded(err)
	}
	sockets := map[string]bool{}
	for _, name := range names {
		target, _ := os.Readlink(dir + "/fd/" + name.Name()) // an error means that it was closed
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			sockets[strings.TrimSuffix(inode, "]")] = true
		}
	}
	if len(sockets) == 0 {
		return false, nil
	}
	own := "/proc/self" // where the broker of a sandbox makes connections, even if the process has another network
	for _, table := range []string{dir + "/net/tcp", dir + "/net/tcp6", dir + "/net/udp", dir + "/net/udp6", own + "/net/tcp", own + "/net/tcp6"} {
		raw, err := os.ReadFile(table)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the table is missing if IPv6 is off
			return false, unlessEnded(err)
		}
		for line := range bytes.Lines(raw) {
			const inode = 9 // the column
			if columns := strings.Fields(string(line)); len(columns) > inode && sockets[columns[inode]] {
				return true, nil
			}
		}
	}
	return false, nil
}

// unlessEnded returns nil for an error that means the process has exited.
func unlessEnded(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
