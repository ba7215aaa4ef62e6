package cgroup

import "github.com/ropewalk/ropewalk/core/process/sandbox"

// reservedTasks is how many threads of its own limit the server keeps from the apps. A Go program that cannot start a
// thread ends.
const reservedTasks = 512

// LeaveTasks is how many threads and processes all apps may have, of the limit that they share with the server.
func LeaveTasks(limit int64) int64 { return limit - min(reservedTasks, limit/2) }

// Bounds are the limits that the kernel holds for a tree.
type Bounds struct{ Memory, Processes, CPU bool }

// All is every limit that a group can hold.
func All() Bounds { return Bounds{Memory: true, Processes: true, CPU: true} }

// Names are the limits that are held, as the API and the log name them.
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

// Split returns the limits that are held, and those that are left to somebody else.
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
