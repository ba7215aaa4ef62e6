package cgroup

import "github.com/ropewalk/ropewalk/core/sandbox"

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
