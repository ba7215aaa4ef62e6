package process

import (
	"os"
	"slices"
	"testing"
)

func TestOnlyMarkedProcessesWithoutAServerAreLeftOver(t *testing.T) {
	const server, shim, dead = 100, 101, 1
	table := []proc{
		{pid: 1, session: 1},
		{pid: server, parent: 1, session: 90},
		{pid: shim, parent: server, session: 90, name: shimName},
		{pid: 102, parent: shim, session: 102},
		{pid: 103, parent: 102, session: 103, name: shimName}, // an app that pretends
		{pid: 104, parent: 103, session: 103},
		{pid: 200, parent: dead, session: 200, name: shimName},
		{pid: 201, parent: 200, session: 200, name: shimName},
		{pid: 202, parent: 201, session: 202},
		{pid: 203, parent: 999, session: 203},                 // of a parent that is not visible
		{pid: 205, parent: dead, session: 200, zombie: true},  // nobody can end it
		{pid: 204, parent: 998, session: 204},                 // of a shim that hidepid hides
		{pid: 300, parent: dead, session: 300},                // not marked
		{pid: 400, parent: 0, session: 400},                   // this server runs in another one's app
		{pid: os.Getpid(), parent: 400, session: 400},         //
		{pid: 500, parent: dead, session: 80, name: shimName}, // a shim whose server has ended
		{pid: 600, parent: 601, session: 600},                 // a cycle
		{pid: 601, parent: 600, session: 600},
	}
	unmarked := []int{1, server, 300, 999}
	got := leftovers(table, func(pid int) bool { return !slices.Contains(unmarked, pid) })
	slices.Sort(got)
	if want := []int{200, 201, 202, 203, 500}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
