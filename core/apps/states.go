package apps

import "github.com/ropewalk/ropewalk/core"

// States returns how many apps of all workspaces are in each state.
func (m *Manager) States() map[core.State]int {
	counts := map[core.State]int{}
	for _, a := range m.allApps() {
		counts[a.now.Load().state]++
	}
	return counts
}
