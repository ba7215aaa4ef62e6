package cgroup

import "github.com/ropewalk/ropewalk/core/process/sandbox"

// reservedTasks is how many threads of the server's own limit are withheld from the apps. A Go program crashes when
// it cannot start a thread.
const reservedTasks = 512

// LeaveTasks returns how many threads and processes all apps together may have, given the limit they share with
// the server.
func LeaveTasks(limit int64) int64 { return limit - min(reservedTasks, limit/2) }

// Bounds says which limits the kernel enforces for a process tree.
type Bounds struct{ Memory, Processes, CPU bool }

// All returns the Bounds with every limit that a group can enforce.
func All() Bounds { return Bounds{Memory: true, Processes: true, CPU: true} }

// Names returns the enforced limits by the names used in the API and the log.
func (b Bounds) Names() []string {
	names := []string{}
	for _, one := range []struct {
		held bool
		name string
	}{{b.CPU, "cpu"}, {b.Memory, "memory"}, {b.Processes, "processes"}} {
		if one.held {
			names = append(names, one.name)
		}
	}
	return names
}

// Split divides the limits into those that the kernel enforces and the rest, which must be enforced in another way.
func (b Bounds) Split(l sandbox.Limits) (held, rest sandbox.Limits) {
	rest = l
	if b.Memory {
		held.Memory, rest.Memory = l.Memory, 0
	}
	if b.Processes {
		held.Processes, rest.Processes = l.Processes, 0
	}
	if b.CPU {
		held.CPU, rest.CPU = l.CPU, 0
	}
	return held, rest
}
